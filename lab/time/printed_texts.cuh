#pragma once
// What is printed where calls of printf are timed and counted: of each text OF(its name, its arguments), `k` a number.
#define PRINTED_TEXTS(OF)                                                                          \
    OF(print1, "\n")                                                                               \
    OF(print16, "P23456789012345\n")                                                               \
    OF(print64, "P23456789012345678901234567890123456789012345678901234567890123\n")               \
    OF(print_int, "P %d\n", k)                                                                     \
    OF(print_4_ints, "P %d %d %d %d\n", k, k, k, k)                                                \
    OF(print_8_ints, "P %d %d %d %d %d %d %d %d\n", k, k, k, k, k, k, k, k)                        \
    OF(print_double, "P %f\n", k * 0.5)                                                            \
    OF(print_text, "P %s\n", "234567890123456789012345")
