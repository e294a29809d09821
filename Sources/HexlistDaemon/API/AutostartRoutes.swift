import HexlistAPI
import Hummingbird

/// Route `DELETE /v1/autostart`: turns off the start of hexlistd at login.
struct AutostartRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.delete("/v1/autostart") { request, _ in
            _ = try APIQuery(request)
            return APIReply.json(ChangeCountJSON(changed: try await api.autostart.turnOff()))
        }
    }
}
