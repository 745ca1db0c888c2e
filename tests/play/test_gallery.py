"""The gallery's page has each answer as memsim gives it, and asks nobody."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl

import msgspec
import pytest

from docs.gallery import static_page
from memsim.play.in_browser import reply_to_page
from memsim.play.question import Question, answer
from memsim.play.replies import reply
from memsim.play.server import GALLERY, address


@pytest.mark.slow
def test_the_static_page_has_the_answers_of_all_examples_and_of_their_cures() -> None:
    page = static_page()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    answers = json.loads(data)["answers"]
    cured = 0
    for question in GALLERY.values():
        found = answer(question)
        assert answers[address(question)] == json.loads(msgspec.json.encode(found))
        for cure in found.cures:
            after = answers[address(msgspec.structs.replace(question, layout=cure.layout))]
            assert after["wavefronts"] == cure.wavefronts < (found.wavefronts or 0)
            cured += 1
    assert len(GALLERY) == 10 and cured and len(answers) <= 10 + cured
    assert "http://" not in page.replace("http://www.w3.org", "") and "src=" not in page.split("<body>")[1]


@pytest.mark.slow
def test_the_page_names_a_worker_where_the_site_has_one() -> None:
    for worker, named in (
        (None, '"worker": null'),
        ("playground/worker.js", '"worker": "playground/worker.js"'),
    ):
        assert named in static_page(worker)


def test_the_worker_of_the_browser_gets_what_the_server_says() -> None:
    class Sent(bytes):
        def to_bytes(self) -> bytes:
            return bytes(self)

    for body in (b"{}", b'{"load": "x +"}'):
        good, content = reply_to_page("answer", Sent(body))
        assert (good, content.encode()) == reply("answer", body)
        assert good == (body == b"{}")


def test_an_address_is_read_back_as_its_question() -> None:
    for question in GALLERY.values():
        fields = dict(parse_qsl(address(question), keep_blank_values=True))
        assert msgspec.convert({**fields, "vector": int(fields["vector"])}, Question) == question
