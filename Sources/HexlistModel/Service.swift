/// The web services that Hexlist recognises in links, with their names. Links with the name of another service keep it unchanged.
public enum Service: String, Sendable, CaseIterable {
    case unknown = "Unknown"
    case dropbox = "Dropbox"
    case box = "Box"
    case googleDrive = "GoogleDrive"

    /// Finds the service by the host of a link; `nil` if no known service has this host.
    public init?(ofLink url: String) {
        guard let host = try? LinkTarget(url, schemes: ["https", "http"]).host else { return nil }
        let isAt = { (domain: String) in
            host.utf8.elementsEqual(domain.utf8) || host.utf8.reversed().starts(with: ".\(domain)".utf8.reversed())
        }
        if isAt("dropbox.com") {
            self = .dropbox
        } else if isAt("box.com") {
            self = .box
        } else if ["drive.google.com", "docs.google.com"].contains(where: { host.utf8.elementsEqual($0.utf8) }) {
            self = .googleDrive
        } else {
            return nil
        }
    }
}
