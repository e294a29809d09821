/// Migration 33: shared lists beside the list of My Hexlist.
enum SharedListSchema {
    static let sql = """
        -- The rows of all lists are in one table. A node is known by its id and list, because a member of one list could send a row with an id
        -- of another one.
        ALTER TABLE node ADD COLUMN list INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE joinNode ADD COLUMN list INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE mineChange ADD COLUMN list INTEGER NOT NULL DEFAULT 1;
        CREATE INDEX mineChangeList ON mineChange (list, number);
        DROP INDEX nodeUUID;
        CREATE UNIQUE INDEX nodeUUID ON node (uuid, list);
        DROP INDEX joinNodeUUID;
        CREATE UNIQUE INDEX joinNodeUUID ON joinNode (uuid, list);
        DROP INDEX nodeChanged;
        -- Since then, via is 0 for rows that a merge made of values from several other replicas.
        CREATE INDEX nodeChanged ON node (list, seq, via) WHERE seq IS NOT NULL;
        -- Rows of another person's list that its owner may not have (`RejectedChanges`), and the number of those that turned out as rejected.
        ALTER TABLE node ADD COLUMN isUnconfirmed INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX nodeUnconfirmed ON node (list) WHERE isUnconfirmed = 1;
        ALTER TABLE list ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0;
        -- Whether a version may have the replica number of the list. Otherwise a new number replaces it (`renewReplica`).
        ALTER TABLE list ADD COLUMN hasUsedReplica INTEGER NOT NULL DEFAULT 1;
        CREATE INDEX listUnusedReplica ON list (replica) WHERE hasUsedReplica = 0;
        DROP INDEX nodeTrashBytes;
        CREATE INDEX nodeTrashBytes ON node (trashNumber, trashBytes, list) WHERE trashNumber IS NOT NULL;
        -- Purged rows have no parent.
        DROP INDEX nodeWaiting;
        CREATE INDEX nodeWaiting ON node (parent) WHERE container IS NULL AND parent IS NOT NULL;
        CREATE INDEX nodeTree ON node (list) WHERE kind = 1;
        CREATE INDEX nodeEntries ON node (list, uuid) WHERE kind = 3;
        -- Of a shared list: the node of My Hexlist that shows it (`SharedListEntry`); NULL while there is none that is not deleted.
        ALTER TABLE list ADD COLUMN entry BLOB;
        -- Whether the user owns the list. If not, `access` is the access that the owner last granted: write, read or none (sharing has ended).
        ALTER TABLE list ADD COLUMN isOwned INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE list ADD COLUMN access TEXT NOT NULL DEFAULT 'write' CHECK (access IN ('write', 'read', 'none'));
        -- The hybrid time at which the owner set that access.
        ALTER TABLE list ADD COLUMN accessAt INTEGER NOT NULL DEFAULT 0;
        -- The latest time at which a page of the list was sent or received (`recordExchange`), in milliseconds since 1970; 0 for never.
        ALTER TABLE list ADD COLUMN exchangedAt INTEGER NOT NULL DEFAULT 0;
        -- The register `epoch` of the entry with which the rows were received. Rows of another epoch are not exchanged.
        ALTER TABLE list ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
        -- Of a shared list: by how much pages of other machines increased the bytes of its texts, and the number of rows in `replica` that they
        -- added.
        ALTER TABLE list ADD COLUMN textBytes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE list ADD COLUMN replicas INTEGER NOT NULL DEFAULT 0;
        -- The peers that the entry of a shared list names: the owner's machines, or the members with their access.
        CREATE TABLE listPeer (
            list INTEGER NOT NULL, peer BLOB NOT NULL CHECK (length(peer) = 16),
            isOwner INTEGER NOT NULL, access TEXT NOT NULL,
            accessAt INTEGER NOT NULL DEFAULT 0,                -- the hybrid time at which the user set it
            state TEXT NOT NULL DEFAULT 'offered',              -- of a member: offered, joined, left
            PRIMARY KEY (list, peer)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX listPeerLists ON listPeer (peer);
        -- Lists that peers offer. The user has not joined them, or has joined them from another peer.
        CREATE TABLE listOffer (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            peer BLOB NOT NULL CHECK (length(peer) = 16), list BLOB NOT NULL CHECK (length(list) = 16),
            title TEXT NOT NULL, access TEXT NOT NULL, accessAt INTEGER NOT NULL, hexes INTEGER NOT NULL, links INTEGER NOT NULL,
            at INTEGER NOT NULL,                                -- of the first offer, milliseconds since 1970
            isDeclined INTEGER NOT NULL DEFAULT 0,
            UNIQUE (peer, list)
        ) STRICT;
        """
}
