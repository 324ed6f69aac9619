"""Every row of every contract has a test, in the order of its page; one that differs also has a reason."""

from __future__ import annotations

import pytest

from tests.contracts import rows
from tests.gateway.conformance import suite
from tests.test_requirements import ROOT, names_in

EVERY = pytest.mark.parametrize("name", rows.ROWS)


@EVERY
def test_every_row_has_a_test(name: str) -> None:
    contract = rows.contract(name)
    assert [text for text in rows.ROWS[name] if text not in contract.shown] == []


@EVERY
def test_the_file_goes_through_its_own_contract_in_the_order_of_the_page(name: str) -> None:
    """The files of a folder with the contract's name belong to it too, in the order in which it imports them."""
    contract, places = rows.contract(name), {text: place for place, text in enumerate(rows.ROWS[name])}
    folder = contract.module.replace(".test_", ".") + "."
    for entry in contract.entries:
        own = not entry.test or entry.module == contract.module or entry.module.startswith(folder)
        assert own, f"{entry.test} belongs to {contract.module}"
        found = [places[text] for text in entry.rows]
        assert found == sorted(found), entry
    firsts = [places[entry.rows[0]] for entry in contract.entries]
    assert firsts == sorted(firsts), next(
        entry for entry, before, place in zip(contract.entries[1:], firsts, firsts[1:], strict=False) if place < before
    )


@EVERY
def test_every_test_that_a_row_names_exists(name: str) -> None:
    for entry in rows.contract(name).entries:
        for test in entry.elsewhere:
            file, _, function = test.partition("::")
            assert function in names_in(ROOT / file), f"{entry.rows[0]}: {test} is gone"


def test_no_row_stands_in_two_contracts() -> None:
    assert len(rows.CONTRACT_OF) == sum(map(len, rows.ROWS.values()))


def test_the_docs_have_the_reasons_of_the_rows_that_differ() -> None:
    assert "\n".join(rows.table()) in suite.PAGE.read_text()


def test_a_row_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AssertionError, match="no such row"):
        rows.row("-32001", "No such requirement")
    with pytest.raises(AssertionError, match="no such row"):
        rows.shown_by("No such requirement", "contracts/test_rows.py::test_no_row_stands_in_two_contracts")
    with pytest.raises(AssertionError, match="no such row"):
        rows.differs("No such requirement", "a reason")
