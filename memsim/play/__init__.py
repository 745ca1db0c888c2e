"""The playground: index math, a layout and a block on a page of this machine; what each access costs follows.

`question.py` answers one state of the page, whose index expressions are read without executing anything;
`server.py` has the page and its examples, and serves it on a local address.
"""
