package kernels

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/compat/debian"
	"github.com/weft-proxy/weft/deploy/compat/report"
	"github.com/weft-proxy/weft/deploy/compat/vm"
)

var suite = flag.String("kernels.suites", "bullseye,bookworm,trixie,trixie-backports", "the suites of Debian whose kernels are tested")

// tooOld is the suite whose kernel weft refuses.
const tooOld = "bullseye"

func TestKernels(t *testing.T) {
	files := build(t)
	rows := [][]string{{"kernel", "Debian", "owner, persist (6.9)", "DESTROYSETELEM (6.3)", "end acknowledged (6.10)"}}
	for _, p := range programs {
		rows[0] = append(rows[0], p.name)
	}
	rows[0] = append(rows[0], "time")
	for name := range strings.SplitSeq(*suite, ",") {
		t.Run(name, func(t *testing.T) {
			row, err := try(t, name, files)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		})
	}
	text := report.Table(rows)
	t.Logf("\n%s", text)
}

// try returns a suite's row of the table.
func try(t *testing.T, name string, files map[string]string) ([]string, error) {
	s, err := debian.Open(cache, name)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, name, "kernel")
	version, err := s.Unpack(root, debian.Kernel, "linux-image-cloud-amd64")
	if err != nil {
		return nil, err
	}
	k, err := vm.FindKernel(root)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(cache, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	start := time.Now()
	out, _, err := vm.Machine{Kernel: k, Files: files, Memory: 2048, Output: log}.Run(t.Context(), script(name == tooOld))
	if err != nil {
		return nil, err
	}
	sections := map[string]string{}
	for part := range strings.SplitSeq(out, section) {
		title, text, _ := strings.Cut(part, "\n")
		sections[strings.TrimSpace(title)] = text
	}
	if refused := strings.Contains(sections["refusal"], "is too old: weft needs Linux 5.13"); refused != (name == tooOld) {
		t.Errorf("weft is refused: %t, want %t: %s", refused, name == tooOld, sections["refusal"])
	}
	row := []string{k.Release, name + " " + version}
	if name == tooOld {
		row = append(row, slices.Repeat([]string{"-"}, 3+len(programs))...)
		row[2] = "refused at the start"
		return append(row, time.Since(start).Round(time.Second).String()), nil
	}
	for _, feature := range []string{"owner", "destroy", "ackEnd"} {
		row = append(row, found(t, sections["nft/kernel"], feature))
	}
	for _, p := range programs {
		text, ran := sections[p.name]
		if !ran {
			row = append(row, "-")
			continue
		}
		row = append(row, judge(t, p, text))
	}
	return append(row, time.Since(start).Round(time.Second).String()), nil
}

var feature = regexp.MustCompile(`feature (\w+): (true|false)`)

func found(t *testing.T, text, name string) string {
	for _, m := range feature.FindAllStringSubmatch(text, -1) {
		if m[1] == name {
			return map[string]string{"true": "yes", "false": "no"}[m[2]]
		}
	}
	t.Errorf("no test reported the feature %s", name)
	return "?"
}

var result = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)|^(PASS|FAIL|SKIP) +(\d+)  `)

// judge counts the results of a program, and reports failures.
func judge(t *testing.T, p program, text string) string {
	count := map[string]int{}
	for _, m := range result.FindAllStringSubmatch(text, -1) {
		verdict, test := m[1]+m[3], m[2]+m[4]
		count[verdict]++
		if verdict == "FAIL" {
			t.Errorf("%s: %s failed", p.name, test)
		}
	}
	if count["PASS"] == 0 {
		t.Errorf("%s: nothing passed:\n%s", p.name, text)
	}
	if count["FAIL"] == 0 && !strings.Contains(text, "exit 0") {
		t.Errorf("%s: it did not exit with 0:\n%s", p.name, text[max(0, len(text)-2000):])
	}
	out := fmt.Sprintf("%d passed", count["PASS"])
	for _, other := range []string{"FAIL", "SKIP"} {
		if n := count[other]; n > 0 {
			out += fmt.Sprintf(", %d %s", n, map[string]string{"FAIL": "failed", "SKIP": "skipped"}[other])
		}
	}
	return out
}
