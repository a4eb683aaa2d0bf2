# fish completion of quiverctl: the running router says which words could follow.

function __quiverctl_router
    set -l words (commandline -opc)
    set -l socket
    set -l line
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case -s --socket
                set socket --socket $words[2]
                set -e words[1]
            case '-*'
                set -q line[1]; and set -a line $words[1]
            case '*'
                set -a line $words[1]
        end
        set -e words[1]
    end
    quiverctl $socket --complete (string join ' ' -- $line (commandline -ct)) 2>/dev/null
    set -q line[1]; or printf 'top\tShow live what the router does\n'
end

complete -c quiverctl -f -a '(__quiverctl_router)'
complete -c quiverctl -s s -l socket -r -F -d "The router's API socket"
complete -c quiverctl -s j -l json -d 'Print answers as JSON'
complete -c quiverctl -s k -l keep-going -d 'Go on after a command is refused'
complete -c quiverctl -s h -l help -d 'Print help'
complete -c quiverctl -s V -l version -d 'Print the version'
