"""Earlier names of `progress`, `switches` and `troubles`."""

from openbell.stores.records.progress import all_progress as marked
from openbell.stores.records.progress import progress as mark
from openbell.stores.records.progress import set_progress as set_mark
from openbell.stores.records.switches import HALT, halted
from openbell.stores.records.troubles import all_troubles as troubled
from openbell.stores.records.troubles import set_trouble

__all__ = ["HALT", "halted", "mark", "marked", "set_mark", "set_trouble", "troubled"]
