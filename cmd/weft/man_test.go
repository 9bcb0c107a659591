package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manDir is where the manual pages are written. The generator is a test so that the program
// does not carry it.
var manDir = flag.String("man.dir", "", "write the manual pages to this directory")

// TestManPages writes a page for each command, and reads each as a user would: nothing that
// the help has is lost in it.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	} else if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages are for all users
		t.Fatal(err)
	}
	root := newRootCmd()
	commands := plainCommands(root)
	header := &doc.GenManHeader{Title: "WEFT", Section: "1", Source: "weft", Manual: "weft", Date: manDate(t)}
	must(t, doc.GenManTree(root, header, dir))
	for _, c := range commands {
		page := filepath.Join(dir, strings.ReplaceAll(c.path, " ", "-")+".1")
		if _, err := os.Stat(page); err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		text := readManual(t, page)
		for _, part := range []string{c.short, c.long, c.example} {
			for word := range strings.FieldsSeq(part) {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %q is not in the page", c.path, word)
				}
			}
		}
	}
	t.Logf("%d pages", len(commands))
}

// manDate returns the date of the pages: that of the source, if make says it, for builds that
// can be repeated.
func manDate(t *testing.T) *time.Time {
	t.Helper()
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		t.Fatalf("SOURCE_DATE_EPOCH: %v", err)
	}
	date := time.Unix(seconds, 0).UTC()
	return &date
}

// help is what the help of a command has.
type help struct{ path, short, long, example string }

// plainCommands returns the commands that have pages. It escapes their texts, which are plain,
// for the generator, which reads them as Markdown.
func plainCommands(cmd *cobra.Command) (out []help) {
	out = append(out, help{cmd.CommandPath(), cmd.Short, cmd.Long, cmd.Example})
	cmd.DisableAutoGenTag = true
	cmd.InitDefaultHelpFlag()
	if cmd.HasParent() && cmd.Parent().Name() == "completion" {
		// cobra wrote these texts, and they are Markdown.
		out[0].long = ""
		return out
	}
	markdown := strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "`", "\\`")
	cmd.Short, cmd.Long = markdown.Replace(cmd.Short), markdown.Replace(cmd.Long)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			out = append(out, plainCommands(sub)...)
		}
	}
	return out
}

// readManual returns a page as text. Without groff(1) the test is skipped.
func readManual(t *testing.T, page string) string {
	t.Helper()
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("groff(1) is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=10000n", "-rHY=0", page)
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Errorf("%s: %v: %s", page, err, errs.String())
	}
	return string(text)
}
