package faults

import (
	"bytes"
	"fmt"
	"strings"
)

// transcript is the document that TestReader writes.
type transcript struct{ table, body bytes.Buffer }

func newTranscript() *transcript { return &transcript{} }

// begin begins the section of a symptom.
func (tr *transcript) begin(s *symptom) {
	fmt.Fprintf(&tr.table, "| [%s](#%s) | %s to %s | %d | `%s` |\n", s.name, anchor(s.name), s.client, s.url, len(s.ask), s.ask[len(s.ask)-1])
	fmt.Fprintf(&tr.body, "\n%s\n\n```console\n", heading(s))
}

// heading is the line that begins a section.
func heading(s *symptom) string { return "## " + s.name }

// anchor returns the anchor of a heading.
func anchor(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// command adds a command and what it printed.
func (tr *transcript) command(c command, out string) {
	fmt.Fprintf(&tr.body, "%s\n", c)
	for line := range strings.Lines(out) {
		fmt.Fprintln(&tr.body, strings.TrimRight(line, " \n"))
	}
}

// conclude adds what a reader concludes.
func (tr *transcript) conclude(s *symptom) {
	fmt.Fprintf(&tr.body, "```\n\nThe answer is \"%s\": %s. Mended: %s.\n\n```console\n", s.cause, s.meaning, s.remedy)
}

// end ends the section.
func (tr *transcript) end() { fmt.Fprintln(&tr.body, "```") }

// bytes returns the document.
func (tr *transcript) bytes() []byte {
	return append(append([]byte(introduction), tr.table.Bytes()...), tr.body.Bytes()...)
}

// introduction is the beginning of the document.
const introduction = `# Ten faults, each found in at most three commands

TestReader in cmd/weft/doctor/faults seeds ten faults, one after the other, on a
cluster of network namespaces. With each a connection of curl fails that passed before. Then it enters the commands of the documentation until an answer names the cause:
` + "`weft doctor`" + ` on the node where the connection comes in, ` + "`weft explain`" + ` there, and ` + "`weft explain`" + ` on the node of the endpoint. The cause is mended as the answer says, and the connection passes again.

On node-1 are the pods shop/web (10.244.1.2) and shop/client (10.244.1.3), on node-2 is shop/cart (10.244.2.2). Pods are ports of the bridge cni0 of their node. The Services shop/web (10.96.0.10, load balancer 198.51.100.80) and
shop/cart (10.96.0.11, NodePort 30081) have one endpoint each. The client outside is 203.0.113.9. On both nodes runs ` + "`weft run --network-policy`" + ` with the manifests of the cluster.

| fault | connection that fails | commands | the one that names the cause |
| --- | --- | --- | --- |
`
