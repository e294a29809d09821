import HexlistAPI
import Hummingbird

struct DoctorRoutes: Sendable {
    let api: APIContext

    func add(to router: Router<BasicRequestContext>) {
        router.post("/v1/doctor") { request, _ in
            let peer = try APIQuery(request, allowing: ["peer"]).text("peer")
            return APIReply.json(await Doctor(api: api).report(on: peer))
        }
    }
}
