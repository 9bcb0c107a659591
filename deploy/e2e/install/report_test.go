package install

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// report returns the document: commands and seconds of each kind, the scripts, and the wrong turns.
func report(results []result) string {
	var b strings.Builder
	b.WriteString(`# Installing weft, as a new user does

The test types the commands of the documents (deploy/e2e/install). The clusters are a real
kube-apiserver, etcd and controllers, with CoreDNS and two nodes of network namespaces, on which real kubelets run the DaemonSets; the bare node has a real systemd. All of it shares
the two cores of one machine. The seconds begin with the first command. The tree and the image are on the machine: cloning and pulling come on top. Commands that are joined count each.

| where | commands | they return after | Services answer after | DNS answers after |
| --- | --- | --- | --- | --- |
`)
	for _, r := range results {
		n := 0
		for _, s := range r.scripts {
			n += s.commands()
		}
		fmt.Fprintf(&b, "| %s: %s | %d | %.1f s | %.1f s | %.1f s |\n",
			r.kind, r.about, n, r.returned.Seconds(), r.answered.services().Seconds(), r.answered[dns].Seconds())
	}
	b.WriteString(`
"Services answer": on every node weft has its rules, and a connection from the host and one from a pod to a ClusterIP, and one from outside to a NodePort, are answered. Afterwards a Service
that is created then is answered too, and no rules of kube-proxy are left. Without kube-proxy CoreDNS itself waits for a ClusterIP, the API server's, so DNS comes last.

## What was typed
`)
	var wrong []told
	for _, r := range results {
		fmt.Fprintf(&b, "\n%s: %s\n", r.kind, r.about)
		for _, s := range r.scripts {
			fmt.Fprintf(&b, "(%s)\n\n", s.document)
			for _, line := range s.text {
				fmt.Fprintf(&b, "    %s\n", line)
			}
			b.WriteString("\n")
		}
		wrong = append(wrong, r.wrong...)
	}
	if len(wrong) > 0 {
		b.WriteString("## Wrong turns, and what the user is told\n\n| typed | cause | seen after | where | what is said |\n| --- | --- | --- | --- | --- |\n")
	}
	for _, w := range wrong {
		fmt.Fprintf(&b, "| %s | %s | %.0f s | %s | %s |\n", code(w.turn.script), w.turn.what, w.after.Seconds(), code(cmp.Or(w.turn.look, "its output")), code(strings.Join(w.lines, "` `")))
	}
	return b.String()
}

// services is the time of the last answer except DNS.
func (o observed) services() time.Duration {
	var last time.Duration
	for what, d := range o {
		if what != dns {
			last = max(last, d)
		}
	}
	return last
}

func code(text string) string {
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
