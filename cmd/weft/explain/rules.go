package explain

import (
	"regexp"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/nftfile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/ruleset"
)

var tableFlags = regexp.MustCompile(`(?m)^table [^\n]*\{(?: #[^\n]*)?\n\s*flags[^\n]*$`)

// withoutOwner removes the flags owner and persist: only a table's owner can declare them. nft
// before version 1.0.9 lists them as an empty string.
func withoutOwner(text string) string {
	head, flags, _ := strings.Cut(text, "\n")
	if strings.Contains(flags, "dormant") {
		return head + "\nflags dormant"
	}
	return head + "\n"
}

// readRules reads file, the output of "nft list ruleset", or the kernel if it is empty.
func readRules(file string) (rules *eval.Ruleset, closeRules func(), err error) {
	if file == "" {
		return ReadKernel()
	}
	text, err := nftfile.Read(nil, file)
	if err != nil {
		return nil, nil, err
	}
	tables, err := ruleset.Parse(file, tableFlags.ReplaceAllStringFunc(text, withoutOwner))
	if err != nil {
		return nil, nil, err
	}
	rules, err = load.Tables(load.Part{Tables: tables})
	return rules, func() {}, err
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
