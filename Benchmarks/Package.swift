// swift-tools-version: 6.1
import PackageDescription

// A package of its own, so that the project's build does not include the benchmarks. Run `Benchmarks/decode`.

let package = Package(
    name: "hexlist-benchmarks",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "decode-bench", targets: ["DecodeBench"])],
    dependencies: [.package(name: "hexlist", path: "..")],
    targets: [
        .executableTarget(
            name: "DecodeBench",
            dependencies: [.product(name: "HexlistModel", package: "hexlist"), .product(name: "HexlistWire", package: "hexlist")])
    ]
)
