/// A unit of work for the writer: changes that are committed or rolled back together, and a completion that reports the result.
struct WriteRequest: Sendable {
    /// Maximum number of rows that `work` writes.
    let rows: Int
    /// Whether the request may be deferred to share a transaction, because no caller waits for its result (`PendingWrites`).
    var isDeferrable = false
    let work: @Sendable (StoreWriter) throws -> Void
    /// Called on the writer's thread with the error of the request, or with `nil` once its changes are durable.
    let finish: @Sendable ((any Error)?) -> Void
}
