/// Migration 32: the exchange of My Hexlist with other machines of the user.
enum ListExchangeSchema {
    static let sql = """
        -- The greatest number of a row, and the digest of all rows (`ListDigest`). NULL while there is no own machine: rows are then not
        -- numbered.
        ALTER TABLE list ADD COLUMN seq INTEGER;
        ALTER TABLE list ADD COLUMN digest INTEGER;
        -- Whether there is, or was, an own machine. Then the rows of deleted nodes are never removed.
        ALTER TABLE list ADD COLUMN isReplicated INTEGER NOT NULL DEFAULT 0;
        -- The last time at which a machine requested rows after a number that this store does not have, because it is an old copy. It then
        -- got a new replica number. Milliseconds since 1970.
        ALTER TABLE list ADD COLUMN outdatedAt INTEGER;
        -- The number of the last change, and the replica that sent the row as it is (replica.id; NULL: it was changed here).
        ALTER TABLE node ADD COLUMN seq INTEGER;
        ALTER TABLE node ADD COLUMN via INTEGER;
        -- Of a change that came from another machine: its peer UUID.
        ALTER TABLE mineChange ADD COLUMN author BLOB;
        CREATE INDEX nodeChanged ON node (seq, via) WHERE seq IS NOT NULL;
        -- Links that arrived deleted: they are not in the trash, but their values are removed with age.
        CREATE INDEX nodeUnshown ON node (lived) WHERE trashNumber IS NULL AND lived IS NOT NULL;
        -- The other machines of the user: peers that are trusted, too.
        CREATE TABLE ownMachine (peer BLOB PRIMARY KEY CHECK (length(peer) = 16), addedAt INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        -- The last row that was received of a machine (replica.id and number; NULL: none), and up to which number it has received the rows of this
        -- machine.
        CREATE TABLE listCursor (
            list INTEGER NOT NULL, peer BLOB NOT NULL,
            replica INTEGER, seq INTEGER NOT NULL DEFAULT 0, acked INTEGER NOT NULL DEFAULT 0,
            at INTEGER,                             -- of the last page, milliseconds since 1970
            isFirstExchangeOver INTEGER NOT NULL DEFAULT 0,    -- all rows that the machine had when it was added were received
            PRIMARY KEY (list, peer)
        ) STRICT, WITHOUT ROWID;
        -- The collection of another machine that will replace the own one, while its rows arrive.
        CREATE TABLE joining (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            list BLOB NOT NULL, peer BLOB NOT NULL,
            replica INTEGER, seq INTEGER NOT NULL DEFAULT 0,
            clock INTEGER NOT NULL DEFAULT 0, isComplete INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE joinNode (
            id INTEGER PRIMARY KEY, uuid BLOB NOT NULL, kind INTEGER NOT NULL, url TEXT NOT NULL, service TEXT NOT NULL,
            parent BLOB, orderKey BLOB, previousParent BLOB, placeClock INTEGER, placeBy INTEGER,
            title TEXT, titleClock INTEGER, titleBy INTEGER, registers BLOB,
            goneClock INTEGER, goneBy INTEGER, goneWith BLOB, deletedAt INTEGER, lived INTEGER, trashNumber INTEGER,
            trashedWith BLOB, container BLOB, state INTEGER NOT NULL, leaves INTEGER NOT NULL, hex INTEGER, seq INTEGER, via INTEGER
        ) STRICT;
        CREATE UNIQUE INDEX joinNodeUUID ON joinNode (uuid);
        CREATE INDEX joinNodeContents ON joinNode (container, orderKey) WHERE state <> 1;
        CREATE INDEX joinNodeHexes ON joinNode (hex) WHERE kind = 1;
        CREATE INDEX joinNodeWaiting ON joinNode (parent) WHERE container IS NULL;
        CREATE INDEX joinNodeGoneWith ON joinNode (goneWith) WHERE goneWith IS NOT NULL;
        CREATE INDEX joinNodeTrashedWith ON joinNode (trashedWith) WHERE trashedWith IS NOT NULL;
        """
}
