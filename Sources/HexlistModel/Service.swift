/// The services a link may name. Any other text is kept unchanged.
public enum Service: String, Sendable, CaseIterable {
    case unknown = "Unknown"
    case dropbox = "Dropbox"
    case box = "Box"
    case googleDrive = "GoogleDrive"
}
