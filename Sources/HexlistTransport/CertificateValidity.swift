#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The validity period of a certificate, required by X.509 and ignored by peers.
struct CertificateValidity: Sendable {
    var from: Date
    var until: Date

    /// 2000-01-01 to 9999-12-31, RFC 5280's "no expiration" (section 4.1.2.5).
    static let allTimes = CertificateValidity(
        from: Date(timeIntervalSince1970: 946_684_800), until: Date(timeIntervalSince1970: 253_402_300_799))
}
