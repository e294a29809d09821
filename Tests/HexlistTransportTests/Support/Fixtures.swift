/// Keys and certificates made with openssl, for tests only. All certificates are valid on a single day, so they are expired or not yet
/// valid by most clocks: dates must not matter.
enum Fixtures {
    /// P-256, from `openssl ecparam -name prime256v1 -genkey`.
    static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgd39Biuw+rSookenz
        kXT1DB+ZixZHt8hwsI1ht7Xj2NOhRANCAAQN3iau2Z6nxASabqLhWZbspaMduSYc
        FDbYSBoUJDi/ao2MJXEU8wCMdxNAKkn3j3it0ERXmca39ypi3QOdb9vs
        -----END PRIVATE KEY-----

        """
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBeDCCAR+gAwIBAgIUQycmUPKLmcjSd27arZL6kc5v9EEwCgYIKoZIzj0EAwIw
        EjEQMA4GA1UEAwwHZml4dHVyZTAeFw0yNjExMjEwODE4MjhaFw0yNjExMjIwODE4
        MjhaMBIxEDAOBgNVBAMMB2ZpeHR1cmUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
        AAQN3iau2Z6nxASabqLhWZbspaMduSYcFDbYSBoUJDi/ao2MJXEU8wCMdxNAKkn3
        j3it0ERXmca39ypi3QOdb9vso1MwUTAdBgNVHQ4EFgQUhgKq0+MTGIyXN0rxBpgw
        TRcmHVswHwYDVR0jBBgwFoAUhgKq0+MTGIyXN0rxBpgwTRcmHVswDwYDVR0TAQH/
        BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAEJUBcP/VAhs+TTInuI1Jfsc4MqB6j
        D/kUkRf8Lwa2TgIgKRt5CA5G3rgwxN5PkCRvieI90YV8TQiq5jFRdmfff5A=
        -----END CERTIFICATE-----

        """
    /// `openssl pkey -in key.pem -pubout -outform DER | sha256sum`
    static let fingerprint = "d540f48acc646c87c31c4847d7e4037491b33c080684ca54be86b85f3d247f61"

    static let p384Key = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBNiwRf3os/xCAoXJD5
        55m7L1rZqGyAYNFzzzQN90Ch2WARdsz8vmCY1x2Gn07OogmhZANiAASXAZAGCjCy
        vDr/oxpo9ztIr6Tkc/pLTggnv4Mvz2vM1WbtcrW0FECcGMnQD3DX58rYnUsiq9BA
        IczvuaQRrxyS692UrOpc12o5ii0saCKdrUFI0W/Wm4BmVqfEV1+LbcM=
        -----END PRIVATE KEY-----

        """
    static let p384Certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBtTCCATygAwIBAgIUTaq1a0Xr0K424e4/9kZKIbye7WkwCgYIKoZIzj0EAwIw
        EjEQMA4GA1UEAwwHZml4dHVyZTAeFw0yNjExMjEwODE4MjhaFw0yNjExMjIwODE4
        MjhaMBIxEDAOBgNVBAMMB2ZpeHR1cmUwdjAQBgcqhkjOPQIBBgUrgQQAIgNiAASX
        AZAGCjCyvDr/oxpo9ztIr6Tkc/pLTggnv4Mvz2vM1WbtcrW0FECcGMnQD3DX58rY
        nUsiq9BAIczvuaQRrxyS692UrOpc12o5ii0saCKdrUFI0W/Wm4BmVqfEV1+LbcOj
        UzBRMB0GA1UdDgQWBBQXCn9Id+2d6FhxtqM7F57gP8H4DjAfBgNVHSMEGDAWgBQX
        Cn9Id+2d6FhxtqM7F57gP8H4DjAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMC
        A2cAMGQCMEOgagdXtb6Egojrjzo/akexYxezjunjqWSNk8TFJ7XWG6UKjDpONRGg
        r7MNJMnUhwIwez9aeZiyqZaJ6/kXADS5CxKsmcK5LfPKHJqtqGt1xb+TDV+CstEI
        Lj2oXjnNrmaZ
        -----END CERTIFICATE-----

        """
    static let ed25519Certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBODCB66ADAgECAhQS4MP17B3I3u1/bsYODMMXpAXl7TAFBgMrZXAwEjEQMA4GA1UEAwwHZml4dHVyZTAeFw0yNjExMjEwODE4MjhaFw0yNjExMjIwODE4
        MjhaMBIxEDAOBgNVBAMMB2ZpeHR1cmUwKjAFBgMrZXADIQBb3hLWzoo0rXyL4lpw6LhiU3Np4OT6UffRneDDer9scKNTMFEwHQYDVR0OBBYEFF4Whb/jVQ2L
        kT19LpYBoFw4R95yMB8GA1UdIwQYMBaAFF4Whb/jVQ2LkT19LpYBoFw4R95yMA8GA1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EAkX96dKl9428xQwBaAguzeVBa
        FJcEus7zHxso/JvJd4Tou+ZrE/WMsl2L88LxtaZ6sgmC7zSreXeAf+drrnXiBA==
        -----END CERTIFICATE-----

        """
}
