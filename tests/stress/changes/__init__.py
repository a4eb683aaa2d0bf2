"""The changes that must not lose a packet. A new feature adds what configures it to the file of its layer.

The load comes in at memif1/0 and memif1/1 and is routed to the other by 20.0.0.0/8 via 198.18.0.2 and
21.0.0.0/8 via 198.18.1.2 (rig.py). A background stream goes from pg0 by 22.0.0.0/8 to pg1.
"""

from __future__ import annotations

from stress.changes.bridges import BRIDGES
from stress.changes.fragments import FRAGMENTS
from stress.changes.groups import GROUPS
from stress.changes.interfaces import INTERFACES
from stress.changes.labels import LABELS
from stress.changes.links import LINKS, VLANS
from stress.changes.long_lists import LONG_LISTS
from stress.changes.neighbours import NEIGHBOURS
from stress.changes.policies import POLICIES
from stress.changes.reading import READING
from stress.changes.routes import NEXT_HOPS, ROUTES, TABLES
from stress.changes.segments import SEGMENT_CHANGES
from stress.changes.tunnels import TUNNELS
from stress.changes.twins import TWINS

CHANGES = [
    *ROUTES,
    *NEXT_HOPS,
    *NEIGHBOURS,
    *VLANS,
    *INTERFACES,
    *TABLES,
    *POLICIES,
    *LONG_LISTS,
    *BRIDGES,
    *LINKS,
    *FRAGMENTS,
    *GROUPS,
    *SEGMENT_CHANGES,
    *LABELS,
    *TUNNELS,
    *TWINS,
    *READING,
]
