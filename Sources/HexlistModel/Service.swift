/// The services a link may name. Any other text is kept as it is.
public enum Service: String, Sendable, CaseIterable {
    case unknown = "Unknown"
    case dropbox = "Dropbox"
    case box = "Box"
    case googleDrive = "GoogleDrive"
}
