// One publisher and one consumer for each broker; the consumer stores into SQLite, a durable commit each BATCH, and
// acknowledges after it.
//
//     broker publish nats|redis|mqtt|mqtts FRAMES PORT COUNT          ends once the broker has acknowledged all
//     broker consume nats|redis|mqtt|mqtts DATABASE PORT COUNT BATCH  prints `ready`, ends once all is stored and acknowledged
//
// FRAMES: one JSON frame per line. NATS: JetStream over mutual TLS, certificates from the folder BROKER_CERTIFICATES.
// Redis: streams and a consumer group. MQTT 3.1.1, QoS 1 (`mqtts`: over mutual TLS), implemented here, because libmosquitto is
// slower and acknowledges before its callback. All use their fastest settings; Benchmarks/brokers has those of the brokers.

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <nats/nats.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "rows.hpp"

static const int inFlight = 4000;  // published and not yet acknowledged by the broker

static int port, total, batch;

/// The folder of certificates from Benchmarks/brokers.
static std::string certificate(const char *file) {
    const char *folder = std::getenv("BROKER_CERTIFICATES");
    return std::string(folder ? folder : ".") + "/" + file;
}

static void require(bool done, const std::string &what) {
    if (!done) fail("broker: " + what + " failed");
}

/// The lines of a file, without their ends.
class Lines {
  public:
    explicit Lines(const char *path) : file(std::fopen(path, "r")) { require(file != nullptr, "opening the frames"); }

    bool next() {
        ssize_t read = getline(&line, &capacity, file);
        if (read <= 0) return false;
        length = static_cast<size_t>(line[read - 1] == '\n' ? read - 1 : read);
        return true;
    }

    char *line = nullptr;
    size_t length = 0;

  private:
    std::FILE *file;
    size_t capacity = 0;
};

/// Stores a message without padding for simdjson, so that it has to be copied.
static void take(Rows &rows, const char *bytes, size_t length) {
    static std::vector<char> padded;
    padded.resize(length + simdjson::SIMDJSON_PADDING);
    std::memcpy(padded.data(), bytes, length);
    rows.take(padded.data(), length, padded.size());
}

static void ready() {
    std::puts("ready");
    std::fflush(stdout);
}

// --- NATS JetStream

static void nats(natsStatus status, const char *what) {
    if (status != NATS_OK) fail(std::string("broker: nats: ") + what + ": " + natsStatus_GetText(status));
}

static jsCtx *jetStream(natsConnection **connection) {
    natsOptions *options = nullptr;
    nats(natsOptions_Create(&options), "options");
    std::string url = "tls://127.0.0.1:" + std::to_string(port);
    nats(natsOptions_SetURL(options, url.c_str()), "address");
    nats(natsOptions_SetSecure(options, true), "TLS");
    nats(natsOptions_LoadCATrustedCertificates(options, certificate("receiver.pem").c_str()), "the broker's certificate");
    nats(natsOptions_LoadCertificatesChain(options, certificate("sender.pem").c_str(), certificate("sender.key").c_str()), "certificate");
    nats(natsOptions_SetMaxPendingMsgs(options, 1 << 20), "limit");
    nats(natsConnection_Connect(connection, options), "connecting");
    jsCtx *stream = nullptr;
    jsOptions choice;
    nats(jsOptions_Init(&choice), "options");
    choice.PublishAsync.MaxPending = inFlight;
    nats(natsConnection_JetStream(&stream, *connection, &choice), "JetStream");
    return stream;
}

static void publishNATS(Lines &lines) {
    natsConnection *connection = nullptr;
    jsCtx *stream = jetStream(&connection);
    while (lines.next()) nats(js_PublishAsync(stream, "hex", lines.line, static_cast<int>(lines.length), nullptr), "publishing");
    jsPubOptions options;
    nats(jsPubOptions_Init(&options), "options");
    options.MaxWait = 600'000;
    nats(js_PublishAsyncComplete(stream, &options), "waiting for acknowledgements");
}

static void consumeNATS(Rows &rows) {
    natsConnection *connection = nullptr;
    jsCtx *stream = jetStream(&connection);
    jsStreamConfig stored;
    nats(jsStreamConfig_Init(&stored), "stream");
    const char *subjects[] = {"hex"};
    stored.Name = "HEX";
    stored.Subjects = subjects;
    stored.SubjectsLen = 1;
    stored.Storage = js_FileStorage;
    nats(js_AddStream(nullptr, stream, &stored, nullptr, nullptr), "adding the stream");
    // A push consumer, so that more messages arrive while a batch is stored. One acknowledgement confirms all earlier messages.
    jsSubOptions options;
    nats(jsSubOptions_Init(&options), "options");
    options.ManualAck = true;
    options.Config.Durable = "store";
    options.Config.AckPolicy = js_AckAll;
    options.Config.MaxAckPending = inFlight;
    natsSubscription *subscription = nullptr;
    nats(js_SubscribeSync(&subscription, stream, "hex", nullptr, &options, nullptr), "subscribing");
    nats(natsSubscription_SetPendingLimits(subscription, -1, -1), "limits");
    nats(natsConnection_Flush(connection), "flushing");
    ready();
    for (int stored = 1; stored <= total; ++stored) {
        natsMsg *message = nullptr;
        nats(natsSubscription_NextMsg(&message, subscription, 60'000), "the next message");
        take(rows, natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message)));
        if (rows.pending == batch || stored == total) {
            rows.commit();
            nats(natsMsg_Ack(message, nullptr), "acknowledging");
        }
        natsMsg_Destroy(message);
    }
    nats(natsConnection_Flush(connection), "flushing");
}

// --- Redis Streams

static redisContext *redis() {
    redisContext *context = redisConnect("127.0.0.1", port);
    require(context != nullptr && context->err == 0, "redis: connecting");
    return context;
}

static redisReply *reply(redisContext *context) {
    void *found = nullptr;
    require(redisGetReply(context, &found) == REDIS_OK, "redis: a reply");
    auto *answer = static_cast<redisReply *>(found);
    if (answer->type == REDIS_REPLY_ERROR) fail(std::string("broker: redis: ") + answer->str);
    return answer;
}

static void publishRedis(Lines &lines) {
    redisContext *context = redis();
    int sent = 0, acknowledged = 0;
    const char *words[] = {"XADD", "hex", "*", "f", nullptr};
    size_t lengths[] = {4, 3, 1, 1, 0};
    while (lines.next()) {
        words[4] = lines.line;
        lengths[4] = lines.length;
        require(redisAppendCommandArgv(context, 5, words, lengths) == REDIS_OK, "redis: publishing");
        if (++sent % 500 == 0) {  // a write of half a megabyte
            int done = 0;
            while (!done) require(redisBufferWrite(context, &done) == REDIS_OK, "redis: writing");
            for (; sent - acknowledged > inFlight - 500; ++acknowledged) freeReplyObject(reply(context));
        }
    }
    for (; acknowledged < sent; ++acknowledged) freeReplyObject(reply(context));
}

static void consumeRedis(Rows &rows) {
    redisContext *context = redis();
    redisAppendCommand(context, "XGROUP CREATE hex store 0 MKSTREAM");
    freeReplyObject(reply(context));
    ready();
    // The next read is in flight while this batch is stored.
    const std::string read = "XREADGROUP GROUP store one COUNT " + std::to_string(batch) + " BLOCK 60000 STREAMS hex >";
    auto ask = [&] {
        redisAppendCommand(context, read.c_str());
        int done = 0;
        while (!done) require(redisBufferWrite(context, &done) == REDIS_OK, "redis: writing");
    };
    ask();
    // Acknowledgements are pipelined after the next read, and so are their replies. Nothing waits for them.
    int answered = 0, owed = 0;
    std::vector<std::string> identifiers;
    for (int stored = 0; stored < total;) {
        for (; answered > 0; --answered) freeReplyObject(reply(context));
        redisReply *answer = reply(context);
        answered = owed;
        owed = 0;
        require(answer->type == REDIS_REPLY_ARRAY && answer->elements == 1, "redis: reading");
        redisReply *entries = answer->element[0]->element[1];
        const int more = static_cast<int>(entries->elements);
        if (stored + more < total) ask();
        for (int each = 0; each < more; ++each) {
            redisReply *name = entries->element[each]->element[0], *frame = entries->element[each]->element[1]->element[1];
            identifiers.emplace_back(name->str, name->len);
            take(rows, frame->str, frame->len);
            ++stored;
            if (rows.pending < batch && stored < total) continue;
            rows.commit();
            std::vector<const char *> words = {"XACK", "hex", "store"};
            std::vector<size_t> lengths = {4, 3, 5};
            for (const std::string &identifier : identifiers) {
                words.push_back(identifier.data());
                lengths.push_back(identifier.size());
            }
            require(redisAppendCommandArgv(context, static_cast<int>(words.size()), words.data(), lengths.data()) == REDIS_OK, "redis: XACK");
            int done = 0;
            while (!done) require(redisBufferWrite(context, &done) == REDIS_OK, "redis: writing");
            identifiers.clear();
            ++owed;
        }
        freeReplyObject(answer);
    }
    for (answered += owed; answered > 0; --answered) freeReplyObject(reply(context));
}

// --- MQTT 3.1.1

/// A connection to an MQTT broker, with reads and writes of many packets at once.
class MQTT {
  public:
    MQTT(const std::string &name, bool secure) {
        descriptor = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<uint16_t>(port));
        require(connect(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0, "mqtt: connecting");
        int yes = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (secure) handshake();
        std::string body;
        text(body, "MQTT");
        body += std::string("\x04\x00\x00\x00", 4);  // protocol version, a persistent session, no keep-alive
        text(body, name);
        packet(0x10, body);
        flush();
        next();
        require(kind == 0x20 && length == 2 && payload[1] == 0, "mqtt: CONNECT");
    }

    static void text(std::string &to, const std::string &value) {
        number(to, static_cast<unsigned>(value.size()));
        to += value;
    }

    static void number(std::string &to, unsigned value) {
        to += static_cast<char>(value >> 8);
        to += static_cast<char>(value);
    }

    void packet(unsigned char first, std::string_view head, std::string_view body = {}) {
        output += static_cast<char>(first);
        size_t rest = head.size() + body.size();
        do {
            output += static_cast<char>((rest & 127) | (rest > 127 ? 128 : 0));
            rest >>= 7;
        } while (rest > 0);
        output += head;
        output += body;
    }

    void flush() {
        for (size_t written = 0; written < output.size();) {
            ssize_t count = tls ? SSL_write(tls, output.data() + written, static_cast<int>(output.size() - written))
                                : write(descriptor, output.data() + written, output.size() - written);
            require(count > 0, "mqtt: writing");
            written += static_cast<size_t>(count);
        }
        output.clear();
    }

    size_t waiting() const { return output.size(); }

    bool isReadable() {
        pollfd asked = {descriptor, POLLIN, 0};
        return used - position > 1 || (tls && SSL_pending(tls) > 0) || poll(&asked, 1, 0) > 0;
    }

    /// Reads one packet into `kind`, `payload` and `length`, which are valid until the next call.
    void next() {
        while (!parsed()) {
            std::memmove(input.data(), input.data() + position, used - position);
            used -= position;
            position = 0;
            size_t free = input.size() - simdjson::SIMDJSON_PADDING - used;
            ssize_t count = tls ? SSL_read(tls, input.data() + used, static_cast<int>(free)) : read(descriptor, input.data() + used, free);
            require(count > 0, "mqtt: reading");
            used += static_cast<size_t>(count);
        }
    }

    /// Readable bytes from `at` on.
    size_t room(const char *at) const { return static_cast<size_t>(input.data() + input.size() - at); }

    unsigned char kind = 0;
    const char *payload = nullptr;
    size_t length = 0;

  private:
    int descriptor;
    SSL *tls = nullptr;
    std::string output;
    std::vector<char> input = std::vector<char>(1 << 20);
    size_t used = 0, position = 0;

    void handshake() {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
        SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
        require(SSL_CTX_use_certificate_file(context, certificate("sender.pem").c_str(), SSL_FILETYPE_PEM) == 1
                && SSL_CTX_use_PrivateKey_file(context, certificate("sender.key").c_str(), SSL_FILETYPE_PEM) == 1
                && SSL_CTX_load_verify_file(context, certificate("receiver.pem").c_str()) == 1, "mqtt: certificates");
        tls = SSL_new(context);
        SSL_set_fd(tls, descriptor);
        require(SSL_connect(tls) == 1, "mqtt: the handshake");
    }

    bool parsed() {
        size_t at = position + 1, rest = 0;
        for (int shift = 0;; shift += 7) {
            if (at >= used) return false;
            auto byte = static_cast<unsigned char>(input[at++]);
            rest |= static_cast<size_t>(byte & 127) << shift;
            if (byte < 128) break;
        }
        if (used - at < rest) return false;
        kind = static_cast<unsigned char>(input[position]);
        payload = input.data() + at;
        length = rest;
        position = at + rest;
        return true;
    }
};

static void publishMQTT(Lines &lines, bool secure) {
    MQTT broker("publisher", secure);
    int sent = 0, acknowledged = 0;
    auto acknowledgement = [&] {
        broker.next();
        require(broker.kind == 0x40, "mqtt: PUBACK");
        ++acknowledged;
    };
    while (lines.next()) {
        std::string head;
        MQTT::text(head, "hex");
        MQTT::number(head, static_cast<unsigned>(sent % 60'000) + 1);
        broker.packet(0x32, head, {lines.line, lines.length});
        ++sent;
        if (broker.waiting() >= 16 << 10) broker.flush();
        if (sent - acknowledged >= inFlight) broker.flush();
        while (sent - acknowledged >= inFlight || (broker.waiting() == 0 && acknowledged < sent && broker.isReadable())) acknowledgement();
    }
    broker.flush();
    while (acknowledged < sent) acknowledgement();
}

static void consumeMQTT(Rows &rows, bool secure) {
    MQTT broker("consumer", secure);
    std::string subscription("\x00\x01", 2);
    MQTT::text(subscription, "hex");
    subscription += '\x01';
    broker.packet(0x82, subscription);
    broker.flush();
    broker.next();
    require(broker.kind == 0x90 && broker.payload[2] == 1, "mqtt: SUBSCRIBE");
    ready();
    std::string identifiers;
    for (int stored = 1; stored <= total; ++stored) {
        broker.next();
        require((broker.kind & 0xF6) == 0x32, "mqtt: a message");
        size_t topic = static_cast<unsigned char>(broker.payload[0]) << 8 | static_cast<unsigned char>(broker.payload[1]);
        identifiers.append(broker.payload + 2 + topic, 2);
        const char *frame = broker.payload + 4 + topic;
        rows.take(frame, broker.length - 4 - topic, broker.room(frame));
        if (rows.pending < batch && stored < total) continue;
        rows.commit();
        for (size_t each = 0; each < identifiers.size(); each += 2) broker.packet(0x40, {identifiers.data() + each, 2});
        identifiers.clear();
        broker.flush();
    }
}

int main(int count, char **arguments) {
    std::string what = count > 1 ? arguments[1] : "", which = count > 2 ? arguments[2] : "";
    if (what == "publish" && count == 6) {
        port = std::atoi(arguments[4]);
        Lines lines(arguments[3]);
        if (which == "nats") return publishNATS(lines), 0;
        if (which == "redis") return publishRedis(lines), 0;
        if (which == "mqtt" || which == "mqtts") return publishMQTT(lines, which == "mqtts"), 0;
    }
    if (what == "consume" && count == 7) {
        port = std::atoi(arguments[4]);
        total = std::atoi(arguments[5]);
        batch = std::atoi(arguments[6]);
        Rows rows(arguments[3]);
        if (which == "nats") return consumeNATS(rows), 0;
        if (which == "redis") return consumeRedis(rows), 0;
        if (which == "mqtt" || which == "mqtts") return consumeMQTT(rows, which == "mqtts"), 0;
    }
    std::fprintf(stderr, "usage: broker publish|consume nats|redis|mqtt|mqtts …\n");
    return 2;
}
