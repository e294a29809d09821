// The minimum work of a bulk send: two processes, mutual TLS 1.3, a fast parser, SQLite, an acknowledgement after each durable
// commit. One plain thread each, no outbox, no retries, no discovery.
//
//     floor receive DATABASE CERTIFICATE KEY PEER BATCH             prints its port, serves one connection
//     floor send FRAMES PORT CERTIFICATE KEY PEER all|one           one: waits for each, prints microseconds a line
//
// FRAMES: one JSON frame per line. On the wire a frame is preceded by its length (UInt32, big-endian); an acknowledgement is the
// number of durable frames so far (UInt64, big-endian). PEER: the required certificate of the other side.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "rows.hpp"

static void require(bool done, const char *what) {
    if (done) return;
    char reason[256] = "";
    if (unsigned long code = ERR_get_error()) ERR_error_string_n(code, reason, sizeof reason);
    fail(std::string("floor: ") + what + " failed " + reason);
}

static SSL *session(int socket, const char *certificate, const char *key, const char *peer, bool accepts) {
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "TLS 1.3");
    require(SSL_CTX_use_certificate_file(context, certificate, SSL_FILETYPE_PEM) == 1, "the certificate");
    require(SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1, "the key");
    require(SSL_CTX_load_verify_file(context, peer) == 1, "the peer's certificate");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_num_tickets(context, 0);
    int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    SSL *tls = SSL_new(context);
    SSL_set_fd(tls, socket);
    require((accepts ? SSL_accept(tls) : SSL_connect(tls)) == 1, "the handshake");
    return tls;
}

static bool isReadable(SSL *tls, int milliseconds) {
    if (SSL_pending(tls) > 0) return true;
    pollfd waiting = {SSL_get_fd(tls), POLLIN, 0};
    return poll(&waiting, 1, milliseconds) > 0;
}

static void writeAll(SSL *tls, const void *bytes, size_t count) {
    require(count == 0 || SSL_write(tls, bytes, static_cast<int>(count)) == static_cast<int>(count), "writing");
}

// --- the receiver

static void acknowledge(SSL *tls, Rows &rows, uint64_t stored) {
    rows.commit();
    uint64_t number = htobe64(stored);
    writeAll(tls, &number, sizeof number);
}

static int receive(char **arguments) {
    int batch = std::atoi(arguments[4]);
    Rows rows(arguments[0]);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    require(bind(listener, reinterpret_cast<sockaddr *>(&address), length) == 0 && listen(listener, 1) == 0, "listening");
    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    SSL *tls = session(accept(listener, nullptr, nullptr), arguments[1], arguments[2], arguments[3], true);

    std::vector<char> buffer(4 << 20);
    size_t used = 0;
    uint64_t stored = 0;
    for (;;) {
        // An incomplete batch is committed when no more data arrives.
        if (rows.pending > 0 && !isReadable(tls, 2)) acknowledge(tls, rows, stored);
        int count = SSL_read(tls, buffer.data() + used, static_cast<int>(buffer.size() - simdjson::SIMDJSON_PADDING - used));
        if (count <= 0) break;
        used += static_cast<size_t>(count);
        size_t position = 0;
        while (used - position >= 4) {
            uint32_t frame;
            std::memcpy(&frame, buffer.data() + position, 4);
            frame = ntohl(frame);
            require(frame <= 1 << 20, "a frame's length");
            if (used - position - 4 < frame) break;
            rows.take(buffer.data() + position + 4, frame, buffer.size() - position - 4);
            position += 4 + frame;
            ++stored;
            if (rows.pending == batch) acknowledge(tls, rows, stored);
        }
        std::memmove(buffer.data(), buffer.data() + position, used - position);
        used -= position;
    }
    rows.commit();
    return 0;
}

// --- the sender

static uint64_t readAcknowledgement(SSL *tls) {
    uint64_t number = 0;
    size_t have = 0;
    while (have < sizeof number) {
        int count = SSL_read(tls, reinterpret_cast<char *>(&number) + have, static_cast<int>(sizeof number - have));
        require(count > 0, "reading an acknowledgement");
        have += static_cast<size_t>(count);
    }
    return be64toh(number);
}

static int send(char **arguments) {
    bool one = std::strcmp(arguments[5], "one") == 0;
    std::FILE *file = std::fopen(arguments[0], "r");
    require(file != nullptr, "opening the frames");
    int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(arguments[1])));
    require(connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0, "connecting");
    SSL *tls = session(socket, arguments[2], arguments[3], arguments[4], false);

    std::vector<char> record;
    record.reserve(64 << 10);
    uint64_t sent = 0, acknowledged = 0;
    char *line = nullptr;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, file)) > 0) {
        if (line[length - 1] == '\n') --length;
        uint32_t prefix = htonl(static_cast<uint32_t>(length));
        const char *bytes = reinterpret_cast<const char *>(&prefix);
        record.insert(record.end(), bytes, bytes + 4);
        record.insert(record.end(), line, line + length);
        ++sent;
        if (one) {
            auto start = std::chrono::steady_clock::now();
            writeAll(tls, record.data(), record.size());
            record.clear();
            while (acknowledged < sent) acknowledged = readAcknowledgement(tls);
            std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
            std::printf("%.1f\n", took.count());
        } else if (record.size() >= 16 << 10) {  // a whole TLS record
            writeAll(tls, record.data(), 16 << 10);
            record.erase(record.begin(), record.begin() + (16 << 10));
            while (isReadable(tls, 0)) acknowledged = readAcknowledgement(tls);
        }
    }
    writeAll(tls, record.data(), record.size());
    while (acknowledged < sent) acknowledged = readAcknowledgement(tls);
    SSL_shutdown(tls);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 7 && std::strcmp(arguments[1], "receive") == 0) return receive(arguments + 2);
    if (count == 8 && std::strcmp(arguments[1], "send") == 0) return send(arguments + 2);
    std::fprintf(stderr, "usage: floor receive DATABASE CERTIFICATE KEY PEER BATCH | send FRAMES PORT CERTIFICATE KEY PEER all|one\n");
    return 2;
}
