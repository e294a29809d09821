/// Classifies and converts single bytes by ASCII rules, independent of the locale. Names and numbers in the protocol are ASCII.
public enum ASCII {
    @inlinable public static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    @inlinable public static func isLowercase(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
    @inlinable public static func isUppercase(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }
    @inlinable public static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || isLowercase(byte) || isUppercase(byte) }
    @inlinable public static func isPunctuation(_ byte: UInt8) -> Bool { (0x21...0x7E).contains(byte) && !isAlphanumeric(byte) }
    /// Returns the lower case of `A` to `Z`, and any other byte unchanged.
    @inlinable public static func lowercased(_ byte: UInt8) -> UInt8 { isUppercase(byte) ? byte + 0x20 : byte }
    @inlinable public static func uppercased(_ byte: UInt8) -> UInt8 { isLowercase(byte) ? byte - 0x20 : byte }
}
