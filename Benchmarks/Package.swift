// swift-tools-version: 6.1
import PackageDescription

// Measures; kept apart so that the project's own build knows nothing of it. Run `Benchmarks/decode`.

let package = Package(
    name: "hexlist-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "decode-bench", targets: ["DecodeBench"]), .executable(name: "directory-bench", targets: ["DirectoryBench"]),
    ],
    dependencies: [.package(name: "hexlist", path: "..")],
    targets: [
        .executableTarget(
            name: "DecodeBench",
            dependencies: [.product(name: "HexlistModel", package: "hexlist"), .product(name: "HexlistWire", package: "hexlist")]),
        .systemLibrary(name: "CMalloc"),
        .executableTarget(
            name: "DirectoryBench",
            dependencies: [
                "CMalloc", .product(name: "HexlistModel", package: "hexlist"), .product(name: "HexlistDiscovery", package: "hexlist"),
            ]),
    ]
)
