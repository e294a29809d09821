/// Fixes the completion script for bash. Bash splits `@team` into two words, so the script would not find the option before it.
enum BashScript {
    /// Returns the script with the fix for bash.
    /// - Parameter script: the script of swift-argument-parser, for any shell. A script that is not for bash is returned unchanged.
    static func completed(_ script: String) -> String {
        script.hasPrefix("#!/bin/bash\n") ? script + "\n\n" + wholeWords : script
    }

    private static let wholeWords = """
        # A name of a group begins with @, which bash takes for a word by itself.
        _hexlist_whole_word() {
            local -i at=$((COMP_CWORD - 1))
            if [[ "${2}" = @?* && "${at}" -gt 0 && "${COMP_WORDS[at]}" = @ ]]; then
                local -a COMP_WORDS=("${COMP_WORDS[@]::at}" "${2}" "${COMP_WORDS[@]:at + 2}")
                local -i COMP_CWORD="${at}"
                _hexlist "${1}" "${2}" "${COMP_WORDS[at - 1]}"
            else
                _hexlist "${@}"
            fi
        }

        complete -o filenames -F _hexlist_whole_word hexlist
        """
}
