/// The completion script for bash, which takes `@` for the end of a word: it gives `@te` to a completion as two words, so that what stands
/// before them, `--to`, would not be seen.
enum BashScript {
    /// - Parameter script: what the argument parser prints for any shell.
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
