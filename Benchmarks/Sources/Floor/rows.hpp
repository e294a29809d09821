// Parses a Store frame with simdjson and inserts a row for the hex and one for each link into SQLite, in tables with the columns
// and indexes that hexlistd fills on receiving (Sources/HexlistStore/Engine/StoreSchema.swift). Used by every pipeline beside
// Hexlist.
#pragma once

#include <simdjson.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

[[noreturn]] inline void fail(const std::string &what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
}

class Rows {
  public:
    /// Creates a database at `path` with the same settings as hexlistd's.
    explicit Rows(const char *path) {
        check(sqlite3_open(path, &db));
        run("PRAGMA journal_mode = WAL");
        run("PRAGMA synchronous = FULL");
        run("PRAGMA wal_autocheckpoint = 4000");
        run("PRAGMA journal_size_limit = 33554432");
        run("PRAGMA cache_size = -8000");
        run("CREATE TABLE hex (id INTEGER PRIMARY KEY, location TEXT NOT NULL, inboxNumber INTEGER, peer INTEGER, messageID BLOB,"
            "isProven INTEGER NOT NULL, unread INTEGER NOT NULL, linkCount INTEGER NOT NULL, byteCount INTEGER NOT NULL,"
            "receivedAt INTEGER NOT NULL, inboxAt INTEGER, senderUUID TEXT NOT NULL, senderName TEXT NOT NULL,"
            "description TEXT NOT NULL, color TEXT NOT NULL, extra TEXT NOT NULL) STRICT");
        run("CREATE UNIQUE INDEX hexMessage ON hex (peer, messageID) WHERE isProven = 1 AND messageID IS NOT NULL");
        run("CREATE UNIQUE INDEX hexInbox ON hex (inboxNumber) WHERE inboxNumber IS NOT NULL");
        run("CREATE INDEX hexPeer ON hex (peer, inboxNumber)");
        run("CREATE INDEX hexUnread ON hex (inboxNumber, peer) WHERE unread = 1 AND inboxNumber IS NOT NULL");
        run("CREATE TABLE link (id INTEGER PRIMARY KEY, url TEXT NOT NULL, description TEXT NOT NULL, service TEXT NOT NULL,"
            "extra TEXT NOT NULL) STRICT");
        hex = prepare("INSERT INTO hex VALUES (?1, 'inbox', ?1, 1, ?2, 1, 1, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9, '')"
                      " ON CONFLICT (peer, messageID) WHERE isProven = 1 AND messageID IS NOT NULL DO NOTHING");
        link = prepare("INSERT INTO link VALUES (?, ?, ?, ?, '')");
        begin = prepare("BEGIN IMMEDIATE");
        end = prepare("COMMIT");
    }

    /// Stores one frame, in the transaction that is open or a new one. `capacity`: the bytes that may be read from
    /// `frame` on, at least `SIMDJSON_PADDING` more than `length`.
    void take(const char *frame, size_t length, size_t capacity) {
        parse(frame, length, capacity);
        if (pending == 0) step(begin);
        check(sqlite3_bind_int64(hex, 1, next));
        check(sqlite3_bind_blob(hex, 2, messageID, sizeof messageID, SQLITE_STATIC));
        check(sqlite3_bind_int64(hex, 3, static_cast<sqlite3_int64>(links.size())));
        check(sqlite3_bind_int64(hex, 4, static_cast<sqlite3_int64>(length)));
        check(sqlite3_bind_int64(hex, 5, milliseconds()));
        bind(hex, 6, senderUUID);
        bind(hex, 7, senderName);
        bind(hex, 8, description);
        bind(hex, 9, color);
        step(hex);
        if (sqlite3_changes(db) == 1) {
            sqlite3_int64 id = next++ << 13;
            for (const Link &each : links) {
                check(sqlite3_bind_int64(link, 1, id++));
                bind(link, 2, each.url);
                bind(link, 3, each.description);
                bind(link, 4, each.service);
                step(link);
            }
        }
        ++pending;
    }

    /// Commits. Returns once all stored frames are durable.
    void commit() {
        if (pending == 0) return;
        step(end);
        pending = 0;
    }

    /// Frames stored but not committed.
    int pending = 0;

  private:
    struct Link {
        std::string_view url, description, service;
    };

    sqlite3 *db = nullptr;
    sqlite3_stmt *hex, *link, *begin, *end;
    sqlite3_int64 next = 1;
    simdjson::ondemand::parser parser;
    unsigned char messageID[16];
    std::string_view senderUUID, senderName, description, color;
    std::vector<Link> links;

    void parse(const char *frame, size_t length, size_t capacity) {
        links.clear();
        try {
            simdjson::ondemand::document document = parser.iterate(frame, length, capacity);
            for (auto member : document.get_object()) {
                std::string_view key = member.unescaped_key();
                if (key == "messageID") {
                    parseUUID(member.value().get_string());
                } else if (key == "jmObject") {
                    parseHex(member.value().get_object());
                } else if (key != "sequence") {
                    std::string_view text = member.value().get_string();
                    (void)text;
                }
            }
        } catch (const simdjson::simdjson_error &error) {
            fail(std::string("a frame that is no JSON: ") + error.what());
        }
    }

    void parseHex(simdjson::ondemand::object object) {
        for (auto member : object) {
            std::string_view key = member.unescaped_key();
            if (key == "links") {
                for (simdjson::ondemand::object element : member.value().get_array()) {
                    Link found;
                    for (auto part : element) {
                        std::string_view name = part.unescaped_key();
                        std::string_view text = part.value().get_string();
                        if (name == "url") found.url = text;
                        if (name == "linkDescription") found.description = text;
                        if (name == "service") found.service = text;
                    }
                    links.push_back(found);
                }
                continue;
            }
            std::string_view text = member.value().get_string();
            if (key == "senderUUID") senderUUID = text;
            if (key == "senderName") senderName = text;
            if (key == "hexDescription") description = text;
            if (key == "hexColor") color = text;
        }
    }

    void parseUUID(std::string_view text) {
        int digits = 0;
        for (char character : text) {
            if (character == '-') continue;
            int value = character <= '9' ? character - '0' : (character | 0x20) - 'a' + 10;
            if (digits == 32 || value < 0 || value > 15) fail("a messageID that is no UUID");
            messageID[digits / 2] = static_cast<unsigned char>(digits % 2 ? messageID[digits / 2] | value : value << 4);
            ++digits;
        }
        if (digits != 32) fail("a messageID that is no UUID");
    }

    static sqlite3_int64 milliseconds() {
        using namespace std::chrono;
        return duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
    }

    void run(const char *sql) { check(sqlite3_exec(db, sql, nullptr, nullptr, nullptr)); }

    sqlite3_stmt *prepare(const char *sql) {
        sqlite3_stmt *statement = nullptr;
        check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
        return statement;
    }

    void bind(sqlite3_stmt *statement, int index, std::string_view text) {
        check(sqlite3_bind_text(statement, index, text.data() ? text.data() : "", static_cast<int>(text.size()), SQLITE_STATIC));
    }

    void step(sqlite3_stmt *statement) {
        if (sqlite3_step(statement) != SQLITE_DONE) fail(sqlite3_errmsg(db));
        sqlite3_reset(statement);
    }

    void check(int code) {
        if (code != SQLITE_OK) fail(db ? sqlite3_errmsg(db) : "no database");
    }
};
