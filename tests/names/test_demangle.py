"""Names of kernels, mangled and as people write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.names.demangle import demangle, resolve, without_long_arguments

# Written by g++ 12 and nvcc 13. What c++filt (GNU binutils 2.40) says differs in spaces, in the suffixes of
# integers, and in the types and values that stand here without their parameters.
NAMES = {
    "plain": "plain",
    "_Z2stPf": "st",
    "_ZL2stPf": "st",
    "_Z2sgILi128ELi0EEvPf": "sg<128,0>",
    "_Z2sgILin1ELi2EEvPf": "sg<-1,2>",
    "_Z2kbILb1EEvPf": "kb<true>",
    "_Z2kbILb0EEvPf": "kb<false>",
    "_Z2kcILc97EEvPf": "kc<(char)97>",
    "_Z2kuILj7EEvPf": "ku<7>",
    "_Z2klILxn5EEvPf": "kl<-5>",
    "_Z2keILN2ns5inner1EE5EEvPf": "ke<(ns::inner::E)5>",
    "_Z2kpIJEEvPf": "kp<>",
    "_Z2kpIJifN2ns5inner1SEEEvPf": "kp<int,float,ns::inner::S>",
    "_Z3kpiIJLi1ELi2ELi3EEEvPf": "kpi<1,2,3>",
    "_Z2ktIhEvPT_": "kt<unsigned char>",
    "_Z2ktI6float4EvPT_": "kt<float4>",
    "_Z2ktI3VecIS0_IfEEEvPT_": "kt<Vec<Vec<float>>>",
    "_Z2ktI3ArrIfLi4EEEvPT_": "kt<Arr<float,4>>",
    "_Z2ktIPKfEvPT_": "kt<float const*>",
    "_Z2ktIRVKfEvT_": "kt<float const volatile&>",
    "_Z2ktIPFifEEvPT_": "kt<int(*)(float)>",
    "_Z2ktIPA4_fEvT_": "kt<float(*)[4]>",
    "_Z2ktIPFvvEEvT_": "kt<void(*)()>",
    "_Z3kttI3VecIiES1_EvPT_PT0_": "ktt<Vec<int>,Vec<int>>",
    "_Z3ktvI3VecEvPf": "ktv<Vec>",
    "_Z2kfIZ4mainEUlfE_EvPfT_": "kf<main::{lambda(float)#1}>",
    "_Z2kfIZ4mainEUlvE1_EvPfT_": "kf<main::{lambda()#3}>",
    "_Z2kfIZN2ns4hostIfEEvT_EUlfE0_EvPfS2_": "kf<ns::host<float>::{lambda(float)#2}>",
    "_Z2kfIZN2ns4hostIfEEvT_E1LEvPfS2_": "kf<ns::host<float>::L>",
    "_Z2kfIN2ns2glMUlfE_EEvPfT_": "kf<ns::gl::{lambda(float)#1}>",
    "_Z2kkI3TupIJ3ArrIfLi2EES2_S1_IfLin3EEEEEvv": "kk<Tup<Arr<float,2>,Arr<float,2>,Arr<float,-3>>>",
    "_Z2kkIKPVKiEvv": "kk<int const volatile* const>",
    "_Z2kkIN1WIfE2InEEvv": "kk<W<float>::In>",
    "_Z2kkIRA2_A3_fEvv": "kk<float(&)[2][3]>",
    "_Z2fnIXadL_Z2tfIfEfT_EEEvv": "fn<&tf<float>>",
    "_Z2ttIf3ArrXadL_Z2g3EEEvv": "tt<float,Arr,&g3>",
    "_Z3kfpIXadL_Z3devPfEEEvS0_": "kfp<&dev>",
    "_Z4ksumILi4EEvPAplT_Li1E_f": "ksum<4>",
    "_ZN2ns5inner5sgemmILi128ELi32EdEEvPT1_": "ns::inner::sgemm<128,32,double>",
    "_ZN37_GLOBAL__N__ce438df1_8_names_cu_plain5anontILi3EEEvPf": "(anonymous namespace)::anont<3>",
    "_Z1kISt4pairIiSaIcEEEvT_": "k<std::pair<int,std::allocator<char>>>",
    "_ZNSt3foo3barEv": "std::foo::bar",
    "_ZN3Foo3runILi2EEEvv": "Foo::run<2>",
    "_Z1kILf3fc00000EEvv": "k<1.5>",
    "_Z1kILDn0EEvv": "k<nullptr>",
    "_Z1kI6__halfDF16_EvT_T0_": "k<__half,_Float16>",
    "_Z3fooB5cxx11v": "foo[abi:cxx11]",
    # What is not understood is left alone.
    "_Z1kIXplLi1ELi2EEEvv": "_Z1kIXplLi1ELi2EEEvv",
    "_Z2kkIM1WIiEiEvv": "_Z2kkIM1WIiEiEvv",
    "_Z9tooshort": "_Z9tooshort",
    "_Z": "_Z",
    "_Z1kI": "_Z1kI",
    "_Z1kIS5_Evv": "_Z1kIS5_Evv",
    "_Z3f.oPf": "f.o",
}


@pytest.mark.parametrize("name", NAMES)
def test_demangle(name: str) -> None:
    assert demangle(name) == NAMES[name]


@pytest.mark.parametrize(
    ("digits", "value"), [("4020000000000000", "8.0"), ("32", None), ("", None), ("n1", None)]
)
def test_a_floating_literal_of_another_length_stays_as_it_is(digits: str, value: str | None) -> None:
    name = f"_Z1tILd{digits}EEvv"
    assert demangle(name) == (f"t<{value}>" if value else name)


def test_a_name_nested_too_deeply_stays_as_it_is() -> None:
    assert demangle(f"_Z1tI{'P' * 9}iEvv") == f"t<int{'*' * 9}>"
    name = f"_Z1tI{'P' * 100_000}iEvv"
    assert demangle(name) == name


def test_kernels_of_two_compilers_have_their_names() -> None:
    found = (Path(__file__).parent / "entries.txt").read_text("utf-8").splitlines()
    assert len(found) == len(set(found)) == 42
    for name in found:
        assert demangle(name) == name if name == "plain" else re.fullmatch(r"[\w:]+(<.*>)?", demangle(name))
    assert "types<float const*,Array<unsigned char,4>>" in {demangle(name) for name in found}
    assert "function<&callee>" in {demangle(name) for name in found}


KERNELS = [
    "_Z2sgILi128ELi0EEvPf",
    "_Z2sgILi64ELi1EEvPf",
    "_ZN2ns5inner5sgemmILi128ELi64EfEEvPT1_",
    "_Z2keILN2ns5inner1EE5EEvPf",
    "_Z2ktIPKfEvPT_",
    "_Z2ktIhEvPT_",
    "_Z2kuILj7EEvPf",
    "_Z3addPfS_",
    "plain",
]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("_Z3addPfS_", "_Z3addPfS_"),
        ("add", "_Z3addPfS_"),
        ("add(float*, float*)", "_Z3addPfS_"),
        ("plain", "plain"),
        ("sg<128,0>", "_Z2sgILi128ELi0EEvPf"),
        ("sg<128, 0>", "_Z2sgILi128ELi0EEvPf"),
        (" sg < 64 ,1 > ", "_Z2sgILi64ELi1EEvPf"),
        ("sg<64,1>(float*)", "_Z2sgILi64ELi1EEvPf"),
        ("ns::inner::sgemm<128,64,float>", "_ZN2ns5inner5sgemmILi128ELi64EfEEvPT1_"),
        ("ns::inner::sgemm", "_ZN2ns5inner5sgemmILi128ELi64EfEEvPT1_"),
        ("sgemm<128, 64, float>", "_ZN2ns5inner5sgemmILi128ELi64EfEEvPT1_"),
        ("sgemm", "_ZN2ns5inner5sgemmILi128ELi64EfEEvPT1_"),
        ("ke<(ns::inner::E)5>", "_Z2keILN2ns5inner1EE5EEvPf"),
        ("ke<5>", "_Z2keILN2ns5inner1EE5EEvPf"),
        ("kt<const float *>", "_Z2ktIPKfEvPT_"),
        ("kt<float const*>", "_Z2ktIPKfEvPT_"),
        ("kt<unsigned char>", "_Z2ktIhEvPT_"),
        ("ku<7u>", "_Z2kuILj7EEvPf"),
        ("ku<7>", "_Z2kuILj7EEvPf"),
    ],
)
def test_resolve(wanted: str, name: str) -> None:
    assert resolve(KERNELS, wanted) == name


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("sg", "'sg' matches 2 kernels", "one of sg<128,0>, sg<64,1>"),
        ("kt", "'kt' matches 2 kernels", "one of kt<float const*>, kt<unsigned char>"),
        ("sg<128,1>", "there is no kernel 'sg<128,1>'", "did you mean sg<128,0>, sg<64,1>?"),
        ("sgem", "there is no kernel 'sgem'", "did you mean ns::inner::sgemm<128,64,float>"),
        ("kkt", "there is no kernel 'kkt'", "did you mean kt<float const*>, kt<unsigned char>"),
        ("aad", "there is no kernel 'aad'", "did you mean add?"),
        ("zzzz", "there is no kernel 'zzzz'", "there is add, ke<(ns::inner::E)5>, "),
    ],
)
def test_unresolved(wanted: str, message: str, hint: str) -> None:
    with pytest.raises(MemsimError) as caught:
        resolve(KERNELS, wanted)
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint)
    assert caught.value.exit_code == 2


def test_no_kernels_at_all() -> None:
    with pytest.raises(MemsimError, match="the file has no kernels"):
        resolve([], "k")


@pytest.mark.parametrize(
    ("name", "brief"),
    [
        ("sgemm<128,float>", "sgemm<128,float>"),
        (
            "at::native::reduce_kernel<512,1,at::native::ReduceOp<bool,int,4>,unsigned int>",
            "reduce_kernel<512,1,ReduceOp<bool,int,4>,unsigned int>",
        ),
        (
            "at::v<2,at::(anonymous namespace)::F<at::G<float>>,at::ceil::{lambda(std::a)#1},b::X<3>>",
            "v<2,F<G<float>>,ceil::{lambda(a)#1},X<3>>",
        ),
        (f"f<int,{'x' * 40},{'y' * 40}>", f"f<int,{'x' * 40},...>"),
        (
            "a::(anonymous namespace)::f<std::array<char*,3>>",
            "a::(anonymous namespace)::f<std::array<char*,3>>",
        ),
        (f"g<1,{'x' * 100}>::h(int)", "g<1,...>::h(int)"),
        (f"g<{'x' * 40}>", f"g<{'x' * 40}>"),
        ("operator<", "operator<"),
        ("", ""),
    ],
)
def test_of_long_arguments_the_first_ones_are_in_a_line(name: str, brief: str) -> None:
    assert without_long_arguments(name) == brief
