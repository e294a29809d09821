/// Changes that the writer makes as a unit, and the completion that reports whether they are durable.
struct WriteRequest: Sendable {
    /// Maximum number of rows that `work` writes.
    let rows: Int
    /// Whether no caller waits for the result, so that the request may be deferred to share a transaction (`PendingWrites`).
    var isDeferrable = false
    let work: @Sendable (StoreWriter) throws -> Void
    /// Called on the writer's thread with the error, or with `nil` once the changes are durable.
    let finish: @Sendable ((any Error)?) -> Void
}
