/// Migration 34: the links of shared lists that the user has not seen (`UnseenLinks`).
enum UnseenLinksSchema {
    static let sql = """
        -- Whether a machine of the user writes with this number.
        ALTER TABLE replica ADD COLUMN isOwn INTEGER NOT NULL DEFAULT 0;
        UPDATE replica SET isOwn = 1 WHERE id IN (SELECT replica FROM list UNION SELECT replica FROM listCursor JOIN ownMachine USING (peer));
        -- Of a shared list: the register `seen` of its entry. For replicas without a row in `listSeen`, the links up to the hybrid time
        -- `seenClock` were seen; NULL: all.
        ALTER TABLE list ADD COLUMN seen TEXT NOT NULL DEFAULT '';
        ALTER TABLE list ADD COLUMN seenClock INTEGER;
        -- The hybrid times up to which links of a replica (replica.number) were seen.
        CREATE TABLE listSeen (
            list INTEGER NOT NULL, number INTEGER NOT NULL, clock INTEGER NOT NULL, PRIMARY KEY (list, number)
        ) STRICT, WITHOUT ROWID;
        -- The version with which a node of a shared list was added, as far as this machine knows; NULL for links that `NodeInserter` added here,
        -- which are never new. A link that was moved before it arrived has a newer place, but still the title with which it was added.
        ALTER TABLE node ADD COLUMN addedClock INTEGER;
        ALTER TABLE node ADD COLUMN addedBy INTEGER;
        UPDATE node SET (addedClock, addedBy) = (iif(titleClock < placeClock, titleClock, placeClock),
            iif(titleClock < placeClock, titleBy, placeBy)) WHERE list > 1 AND kind = 2;
        -- With all columns that reading the order of the links of a hex takes: a row has up to 256 KiB of registers before the column `list`.
        DROP INDEX nodeContents;
        CREATE INDEX nodeContents ON node (container, orderKey, uuid, kind, state, list) WHERE state <> 1;
        CREATE INDEX nodeAdded ON node (list, addedBy, addedClock, kind, state) WHERE kind = 2 AND state <> 1 AND list > 1;
        """
}
