package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// notRun are examples that the story examples does not run, and why. TestExamplesParse checks
// that they are accepted.
var notRun = regexp.MustCompile(strings.Join([]string{
	`^weft (run|aggregator|services|policy|watch|hold)\b`, // they do not end; other stories run them
	`^weft get .* -w\b`, `^weft get drops -f`, `^journalctl`, // nor do these
	`^weft trace `,  // it waits for packets; the story trace has some
	`^weft demo`,    // TestDemo runs it
	`^weft migrate`, // it needs a cluster; deploy/e2e/migration runs them on one
	`^weft cleanup`, // it would end the daemon; the stories cleanup run it
}, "|"))

// exitCodes are those of examples that do not exit with 0.
var exitCodes = map[string]int{
	"weft doctor --bundle weft.tar.gz":                          1,
	"weft doctor":                                               1, // the endpoints do not answer
	"weft doctor -o json":                                       1,
	"weft plan -f deny.nft":                                     3, // there are changes
	"weft plan -f fragments/ --delete old -o json":              3,
	"weft access check --config weft.yaml --as cni -f deny.nft": 1, // what cni may not have
}

// changing are the commands whose examples change what is there.
var changing = regexp.MustCompile(`^weft (apply|confirm|delete|publish|undo)\b`)

// runExamples is the script command "examples SOCKETDIR": it runs the examples of the help of all
// commands. "sh prepare.sh" runs first, before each command whose examples change what is there,
// and after it. SOCKETDIR appears as /run.
func runExamples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: examples SOCKETDIR")
	}
	shell := func(text string) (string, int) {
		cmd := exec.Command("unshare", "-m", "sh", "-c", `mount --bind "$1" /run && exec sh -c "$0"`, text, ts.MkAbs(args[0])) //nolint:noctx // the story ends it
		cmd.Dir, cmd.Env = ts.Getenv("WORK"), environ(ts)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			ts.Fatalf("%s: %v", text, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	ran, wrong := 0, 0
	var of *cobra.Command
	changed := true
	var newest, earlier, handle string
	for i, e := range examples(newRootCmd()) {
		text := strings.TrimSpace(e.text)
		if notRun.MatchString(text) {
			continue
		}
		if of != e.of && (changed || changing.MatchString(text)) {
			out, code := shell("sh prepare.sh " + strconv.Itoa(i))
			revisions := regexp.MustCompile(`"revision": "(\d+)"`).FindAllStringSubmatch(out, 2)
			handles := regexp.MustCompile(`(?s)chain services \{.*? handle (\d+)`).FindStringSubmatch(out)
			if code != 0 || len(revisions) < 2 || handles == nil {
				ts.Fatalf("prepare: exit code %d:\n%s", code, out)
			}
			newest, earlier, handle = revisions[0][1], revisions[1][1], handles[1]
			changed = false
		}
		of = e.of
		changed = changed || changing.MatchString(text)
		// What the help has as numbers is what is there now.
		line := strings.NewReplacer("1790000000124", newest, "00124", newest[len(newest)-5:], "00123", earlier[len(earlier)-5:], "services 7", "services "+handle).Replace(text)
		if strings.HasPrefix(text, "weft confirm") {
			line = "weft apply -f firewall.nft --priority 1 --confirm 1h && " + line
		}
		if out, code := shell(line); code != exitCodes[text] {
			fmt.Fprintf(ts.Stderr(), "%s\nexit code %d, want %d:\n%s\n", line, code, exitCodes[text], out)
			wrong++
		}
		fmt.Fprintf(ts.Stdout(), "%s\n", line)
		ran++
	}
	if wrong > 0 || ran < 40 {
		ts.Fatalf("%d examples were run, and %d were wrong", ran, wrong)
	}
	if _, err := os.Stat(ts.MkAbs("weft.tar.gz")); err != nil {
		ts.Fatalf("the example of weft doctor wrote no file: %v", err)
	}
}
