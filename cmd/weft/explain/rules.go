package explain

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// In bytes.
const maxRuleset = 256 << 20

var tableFlags = regexp.MustCompile(`(?m)^table [^\n]*\{(?: #[^\n]*)?\n\s*flags[^\n]*$`)

// Only the owner of a table can declare the flags owner and persist. nft before version 1.0.9 lists
// them as an empty string.
func withoutOwner(text string) string {
	head, flags, _ := strings.Cut(text, "\n")
	if strings.Contains(flags, "dormant") {
		return head + "\nflags dormant"
	}
	return head + "\n"
}

// file is the output of "nft list ruleset"; empty for the kernel.
func readRules(file string) (rules *eval.Ruleset, closeRules func(), err error) {
	if file != "" {
		rules, err = readFile(file)
		return rules, func() {}, err
	}
	return ReadKernel()
}

// ReadKernel returns the rules of all programs, valid until closeRules.
func ReadKernel() (rules *eval.Ruleset, closeRules func(), err error) {
	r, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return nil, nil, err
	}
	closeRules = func() { _ = r.Close() }
	if rules, err = load.Kernel(r); err != nil {
		closeRules()
		return nil, nil, err
	}
	return rules, closeRules, nil
}

func readFile(name string) (*eval.Ruleset, error) {
	f, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxRuleset+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxRuleset {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxRuleset)
	}
	tables, err := ruleset.Parse(name, tableFlags.ReplaceAllStringFunc(string(b), withoutOwner))
	if err != nil {
		return nil, err
	}
	return load.Tables(load.Part{Tables: tables})
}
