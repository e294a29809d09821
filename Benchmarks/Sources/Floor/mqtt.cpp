// A bare MQTT client on libmosquitto, for `Benchmarks/routes`.
//
//     mqtt publish PORT TOPIC FILE [DATABASE]      publishes the messages of FILE (length as UInt32, big-endian, then bytes) with QoS 1
//     mqtt consume PORT TOPIC COUNT [DATABASE]     reads COUNT messages from a persistent session and acknowledges them; prints "ready"
//                                                  when subscribed
//
// With DATABASE, each message is stored in a transaction of its own, with the settings of hexlistd's store: before it is published, or
// when it has arrived. Prints its processor time in seconds at the end, without that of its start.
#include <mosquitto.h>
#include <sqlite3.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::atomic<long> done{0};
long wanted = 0;
std::string topic;
sqlite3 *database = nullptr;
sqlite3_stmt *insert = nullptr;

[[noreturn]] void fail(const char *what, int code) {
    fprintf(stderr, "mqtt: %s: %s\n", what, mosquitto_strerror(code));
    exit(1);
}

double processorTime() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
}

void check(int code) {
    if (code == SQLITE_OK || code == SQLITE_DONE) return;
    fprintf(stderr, "mqtt: %s\n", sqlite3_errmsg(database));
    exit(1);
}

void openDatabase(const char *path) {
    check(sqlite3_open(path, &database));
    check(sqlite3_exec(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
                                 "CREATE TABLE message (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)", nullptr, nullptr, nullptr));
    check(sqlite3_prepare_v2(database, "INSERT INTO message (bytes) VALUES (?)", -1, &insert, nullptr));
}

/// Stores a message durably, if there is a database.
void store(const void *bytes, size_t count) {
    if (!database) return;
    check(sqlite3_bind_blob(insert, 1, bytes, int(count), SQLITE_STATIC));
    check(sqlite3_step(insert));
    check(sqlite3_reset(insert));
}

std::vector<std::string> messages(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    std::vector<std::string> found;
    unsigned char head[4];
    while (fread(head, 1, 4, file) == 4) {
        const uint32_t size = uint32_t(head[0]) << 24 | head[1] << 16 | head[2] << 8 | head[3];
        std::string message(size, '\0');
        if (fread(message.data(), 1, size, file) != size) break;
        found.push_back(std::move(message));
    }
    fclose(file);
    return found;
}

}  // namespace

int main(int count, char **words) {
    if (count != 5 && count != 6) {
        fprintf(stderr, "usage: mqtt publish PORT TOPIC FILE [DATABASE] | consume PORT TOPIC COUNT [DATABASE]\n");
        return 2;
    }
    const bool publishes = !strcmp(words[1], "publish");
    topic = words[3];
    std::vector<std::string> all;
    if (publishes) all = messages(words[4]);
    if (count == 6) openDatabase(words[5]);
    wanted = publishes ? long(all.size()) : atol(words[4]);
    const double began = processorTime();
    mosquitto_lib_init();
    mosquitto *client = mosquitto_new(publishes ? "bench-publisher" : "bench-consumer", publishes, nullptr);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_max_inflight_messages_set(client, 16);
    mosquitto_connect_callback_set(client, [](mosquitto *client, void *, int) {
        mosquitto_subscribe(client, nullptr, topic.c_str(), 1);
    });
    if (publishes) mosquitto_connect_callback_set(client, nullptr);
    mosquitto_subscribe_callback_set(client, [](mosquitto *, void *, int, int, const int *) { puts("ready"); fflush(stdout); });
    mosquitto_publish_callback_set(client, [](mosquitto *, void *, int) { done++; });
    mosquitto_message_callback_set(client, [](mosquitto *, void *, const mosquitto_message *message) {
        store(message->payload, size_t(message->payloadlen));
        done++;
    });
    if (int code = mosquitto_connect(client, "127.0.0.1", atoi(words[2]), 60)) fail("connect", code);
    size_t next = 0;
    while (done < wanted) {
        // A few more than the window, so that the loop always has something to send.
        while (publishes && next < all.size() && long(next) < done + 32) {
            store(all[next].data(), all[next].size());
            if (int code = mosquitto_publish(client, nullptr, topic.c_str(), int(all[next].size()), all[next].data(), 1, false)) fail("publish", code);
            next++;
        }
        if (int code = mosquitto_loop(client, 100, 1)) fail("loop", code);
    }
    // The last acknowledgements.
    for (int turn = 0; turn < 5; turn++) mosquitto_loop(client, 20, 1);
    mosquitto_disconnect(client);
    printf("%f\n", processorTime() - began);
    return 0;
}
