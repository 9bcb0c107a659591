package runtime

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLogFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod", "0.log")
	l, err := newLog(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	a := &attachment{stdout: &out}
	l.attach(a)
	l.copy("stdout", strings.NewReader("one\n"+strings.Repeat("x", longest)+"\nend"))
	l.detach(a)
	l.copy("stderr", strings.NewReader("two\n"))
	l.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^\S+Z stdout F one\n\S+Z stdout P x+\n\S+Z stdout F \n\S+Z stdout P end\n\S+Z stderr F two\n$`)
	if !want.Match(text) {
		t.Errorf("log:\n%s", text)
	}
	if got := out.String(); !strings.HasPrefix(got, "one\n") || !strings.HasSuffix(got, "end") {
		t.Errorf("attached client got %q", got)
	}
}
