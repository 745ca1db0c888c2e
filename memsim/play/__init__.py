"""The playground: index math, a layout and a block on a page of this machine; what each access costs follows.

`question.py` answers one state of the page, `index_math.py` reads its index expressions without executing
anything, `gallery.py` has the page and its examples, `server.py` serves the page on a local address.
"""
