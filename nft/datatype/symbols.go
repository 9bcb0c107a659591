package datatype

import (
	_ "embed"
	"strconv"
	"strings"
)

// lines "datatype name value"
//
//go:embed symbols.txt
var symbolText string

var symbols = readSymbols(symbolText)

func readSymbols(text string) map[string][]Symbol {
	out := make(map[string][]Symbol)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		if value, err := strconv.ParseUint(fields[2], 0, 64); err == nil {
			out[fields[0]] = append(out[fields[0]], Symbol{fields[1], value})
		}
	}
	return out
}
