import HexlistAPI
import Hummingbird

/// Route `/v1/autostart`: whether hexlistd starts at login.
struct AutostartRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.delete("/v1/autostart") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(ChangedJSON(changed: try await api.autostart.turnOff()))
        }
    }
}
