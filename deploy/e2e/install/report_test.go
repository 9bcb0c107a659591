package install

import (
	"fmt"
	"slices"
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
	for _, group := range byKind(results) {
		r := group[0]
		services, names := "", ""
		if r.answered != nil {
			services = seconds(group, func(r result) time.Duration { return r.answered.services() })
			names = seconds(group, func(r result) time.Duration { return r.answered[dns] })
		}
		n := 0
		for _, s := range r.scripts {
			n += s.commands()
		}
		fmt.Fprintf(&b, "| %s: %s | %d | %s | %s | %s |\n", r.kind, r.about, n, seconds(group, func(r result) time.Duration { return r.returned }), services, names)
	}
	b.WriteString(`
"Services answer": on every node weft has its rules, and a connection from the host and one from a pod to a ClusterIP, and one from outside to a NodePort, are answered. Afterwards a Service
that is created then is answered too, and no rules of kube-proxy are left. Without kube-proxy CoreDNS itself waits for a ClusterIP, the API server's, so DNS comes last.

## What was typed
`)
	var wrong []told
	for _, group := range byKind(results) {
		r := group[0]
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
		fmt.Fprintf(&b, "| %s | %s | %.0f s | %s | %s |\n", code(w.turn.script), w.turn.what, w.after.Seconds(), code(orOutput(w.turn.look)), code(strings.Join(w.lines, "` `")))
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

func byKind(results []result) [][]result {
	var groups [][]result
	for _, r := range results {
		i := slices.IndexFunc(groups, func(g []result) bool { return g[0].kind == r.kind && g[0].about == r.about })
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// seconds is the median of the runs, and the range of several runs.
func seconds(group []result, of func(result) time.Duration) string {
	var all []float64
	for _, r := range group {
		all = append(all, of(r).Seconds())
	}
	slices.Sort(all)
	text := fmt.Sprintf("%.1f s", all[len(all)/2])
	if len(all) > 1 {
		text += fmt.Sprintf(" (%.1f-%.1f)", all[0], all[len(all)-1])
	}
	return text
}

func code(text string) string {
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

func orOutput(look string) string {
	if look == "" {
		return "its output"
	}
	return look
}
