"""The versions of entries, as SQL: the current one stands in `entries`, what it replaced in `history`.

In stores of format 1 the history has the current version too. Such an entry stays so, its `action` being NULL, until it
changes. What a read-only store of format 1 is asked is found under True, the rest under False.
"""

from __future__ import annotations

# Both are asked with the id twice.
HISTORY = {
    False: "SELECT action, body FROM (SELECT version, action, body FROM history WHERE id = ? UNION ALL"
    " SELECT json_extract(e.body, '$.version'), e.action, e.body FROM entries e WHERE e.id = ? AND NOT EXISTS"
    " (SELECT 1 FROM history h WHERE h.id = e.id AND h.version = json_extract(e.body, '$.version')))"
    " ORDER BY version",
    True: "SELECT action, body FROM history WHERE id = ? AND id = ? ORDER BY version",
}
_UNEQUAL = "differs from the last version of its history"
_GAPS = "lacks a version in its history"
_WITH_LAST = " FROM entries e LEFT JOIN history h ON h.id = e.id AND h.version = json_extract(e.body, '$.version')"
_WITH_PAST = (
    " FROM entries e LEFT JOIN (SELECT id, count(*) AS kept, max(version) AS last FROM history GROUP BY id) h"
    " ON h.id = e.id"
)
# Queries that find the ids of damaged entries, and what is wrong with them.
FAULTS = {
    False: (
        (
            f"SELECT e.id {_WITH_LAST} WHERE CASE WHEN h.body IS NULL THEN e.action IS NULL ELSE h.body != e.body END",
            _UNEQUAL,
        ),
        (
            f"SELECT e.id {_WITH_LAST} WHERE h.body IS NULL AND e.action IS NOT NULL"
            " AND e.body_checksum != crc32(e.body)",
            "differs from its checksum",
        ),
        (
            "SELECT id FROM (SELECT e.id, json_extract(e.body, '$.version') AS version, coalesce(h.kept, 0) AS kept,"
            f" coalesce(h.last, 0) AS last {_WITH_PAST}) WHERE last > version OR kept + (last < version) != version",
            _GAPS,
        ),
    ),
    True: (
        (f"SELECT e.id {_WITH_LAST} WHERE h.body IS NULL OR h.body != e.body", _UNEQUAL),
        ("SELECT id FROM history GROUP BY id HAVING count(*) != max(version) OR min(version) != 1", _GAPS),
    ),
}
