import CAvahi
import HexlistDiscovery

/// The announcement of this node and the state of its publication.
struct AvahiPublication {
    var announcement: ServiceAnnouncement?
    /// Whether the announcement has to be published or updated.
    var isDue = false
    /// Whether another service uses the name, so that an alternative is needed.
    var isNameTaken = false
    var retryAt: ContinuousClock.Instant?
    /// The entry group. Created from the client and freed with it.
    var group: OpaquePointer?
    /// The announcement in the entry group. It has an alternative name if another service uses the name of `announcement`.
    var published: ServiceAnnouncement?
    /// The instance name for the next publication, if an alternative was needed before; `nil` to use the announcement's own name.
    var name: String?

    mutating func replace(_ announcement: ServiceAnnouncement?) {
        guard announcement != self.announcement else { return }
        if self.announcement?.instanceName != announcement?.instanceName { name = nil }
        self.announcement = announcement
        isDue = true
        retryAt = nil
    }

    /// Empties the entry group without freeing it, and schedules publication.
    mutating func reset() {
        if let group { avahi_entry_group_reset(group) }
        published = nil
        isDue = true
        retryAt = nil
    }

    mutating func forgetGroup() {
        group = nil
        published = nil
        isDue = true
        isNameTaken = false
        retryAt = nil
    }
}

// Publication of this node's announcement.
extension AvahiLoop {
    private static let retryDelay: Duration = .seconds(10)
    /// Maximum number of names that are tried for one publication.
    private static let nameAttempts = 32

    func publishIfDue() {
        if let retryAt = publication.retryAt, retryAt <= .now {
            publication.retryAt = nil
            publication.isDue = true
        }
        guard publication.isDue, isServerRunning, let client else { return }
        publication.isDue = false
        guard let announcement = publication.announcement else { return withdraw() }
        guard announcement.instanceName.utf8.allSatisfy({ $0 != 0 }), avahi_is_valid_service_name(announcement.instanceName) != 0 else {
            return report(.degraded("This machine cannot be announced: its name is empty or longer than 63 bytes. Set another `name`."))
        }
        if publication.group == nil {
            publication.group = avahi_entry_group_new(
                client,
                { _, state, context in  // the first call comes from inside avahi_entry_group_new
                    AvahiLoop.from(context)?.groupChanged(state)
                }, context)
        }
        guard let group = publication.group else { return publicationFailed(clientError) }
        if publication.isNameTaken {
            publication.isNameTaken = false
            publication.published = nil
            publication.name = Self.alternative(to: publication.name ?? announcement.instanceName)
            avahi_entry_group_reset(group)
        }
        var wanted = announcement
        wanted.instanceName = publication.name ?? announcement.instanceName
        guard wanted != publication.published else { return }
        if update(group, to: wanted) { return }
        announce(group, wanted)
    }

    /// Withdraws the announcement with a goodbye packet, because there is nothing to announce.
    private func withdraw() {
        if let group = publication.group { avahi_entry_group_reset(group) }
        publication.published = nil
        report(.running)
    }

    /// Updates port and TXT in place, without a goodbye packet.
    /// - Returns: false if the name differs or the daemon refuses.
    private func update(_ group: OpaquePointer, to wanted: ServiceAnnouncement) -> Bool {
        guard let published = publication.published, published.instanceName == wanted.instanceName else { return false }
        guard add(wanted, to: group, flags: AVAHI_PUBLISH_UPDATE) == 0 else { return false }
        publication.published = wanted
        return true
    }

    private func announce(_ group: OpaquePointer, _ announcement: ServiceAnnouncement) {
        var wanted = announcement
        for _ in 0..<Self.nameAttempts {
            avahi_entry_group_reset(group)
            var error = add(wanted, to: group, flags: AvahiPublishFlags(rawValue: 0))
            if error == 0 { error = avahi_entry_group_commit(group) }
            switch error {
            case 0:
                publication.published = wanted
                publication.name = wanted.instanceName
                return
            case Int32(AVAHI_ERR_COLLISION):  // another service of this machine has the name
                wanted.instanceName = Self.alternative(to: wanted.instanceName)
            default: return publicationFailed(Self.text(error))
            }
        }
        publicationFailed("all names that were tried are in use")
    }

    private func groupChanged(_ state: AvahiEntryGroupState) {
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED: report(.running)
        case AVAHI_ENTRY_GROUP_COLLISION where publication.announcement == nil: break
        case AVAHI_ENTRY_GROUP_COLLISION:
            publication.isNameTaken = true
            publication.isDue = true
        case AVAHI_ENTRY_GROUP_FAILURE: publicationFailed(clientError)
        default: break  // uncommitted, registering: not finished
        }
    }

    private func publicationFailed(_ cause: String) {
        publication.published = nil
        publication.retryAt = .now + Self.retryDelay
        report(
            .degraded(
                "avahi-daemon does not announce this machine (\(cause)). Discovery of other machines works, and the announcement is retried."
            ))
    }

    private func add(_ announcement: ServiceAnnouncement, to group: OpaquePointer, flags: AvahiPublishFlags) -> Int32 {
        var list: UnsafeMutablePointer<AvahiStringList>?
        defer { avahi_string_list_free(list) }
        // New strings are added at the front of Avahi's list, and the daemon reverses it, so the string added first is the first on the
        // wire.
        for string in announcement.strings {
            guard let longer = avahi_string_list_add_arbitrary(list, string, string.count) else { return Int32(AVAHI_ERR_NO_MEMORY) }
            list = longer
        }
        return avahi_entry_group_add_service_strlst(
            group, Self.anyInterface, Self.anyProtocol, flags, announcement.instanceName, serviceType, nil, nil, announcement.port, list)
    }

    /// The next alternative of a name, "Name #2", "Name #3" …, within 63 bytes.
    private static func alternative(to name: String) -> String {
        guard let alternative = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(alternative) }
        return String(cString: alternative)
    }
}
