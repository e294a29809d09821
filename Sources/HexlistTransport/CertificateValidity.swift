#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The validity period of a certificate. X.509 requires one, but peers ignore it.
struct CertificateValidity: Sendable {
    var from: Date
    var until: Date

    /// From 2000-01-01 to 9999-12-31, which means "no expiration" (RFC 5280, section 4.1.2.5).
    static let allTimes = CertificateValidity(
        from: Date(timeIntervalSince1970: 946_684_800), until: Date(timeIntervalSince1970: 253_402_300_799))
}
