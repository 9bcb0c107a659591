package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const rulesStay = "The rules of the last commit stay in the kernel, but no Service, policy or publisher can change them"

// checkSocket connects to the aggregator.
func checkSocket(_ context.Context, n *node) ([]Finding, error) {
	_, err := n.dial()
	if err == nil {
		return nil, nil
	}
	path := n.Socket
	f := Finding{Severity: Error, Meaning: rulesStay}
	_, statErr := os.Stat(path)
	switch {
	case errors.Is(err, client.ErrPermission), errors.Is(err, os.ErrPermission):
		f.Found, f.Meaning = fmt.Sprintf("weft's socket %s refuses this user: %v", path, err), "What weft says of itself was not examined"
		f.Remedy = "Run weft doctor as root, or as a user that the configuration knows"
	case errors.Is(statErr, fs.ErrNotExist):
		f.Found = fmt.Sprintf("socket %s does not exist: weft does not run here, or with another --socket", path)
		f.Remedy = "Start weft (`kubectl -n kube-system rollout status daemonset/weft`, `systemctl status weft`), or name its socket with --socket"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, client.ErrUnavailable):
		f.Found = fmt.Sprintf("nothing answers on the socket %s: weft has ended or stands by", path)
		f.Remedy = "Look at the end of weft's log (`kubectl -n kube-system logs --previous`, `journalctl -u weft`), and start it"
	default:
		f.Found, f.Remedy = fmt.Sprintf("the socket %s: %v", path, err), "Look at weft's log, and restart weft"
	}
	return []Finding{f}, nil
}

// checkHealth asks weft's HTTP servers, and reads what they count.
func checkHealth(ctx context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	var out []Finding
	for _, page := range []struct{ path, meaning, remedy string }{
		{"/livez", "Changes do not reach the kernel", "Restart weft if its log does not name another cause: its rules stay meanwhile"},
		{"/healthz", "Load balancers do not send traffic to this node", "Remove the cause that the text names, and look at weft's log"},
		{"/readyz", "Rules of a publisher or of the Service frontend are not in force as they should be", "Start the publisher that the text names or withdraw its fragments with `weft delete`; if it names the API server, look at its address and credentials"},
	} {
		code, body, err := httpGet(ctx, n.Health, page.path)
		switch {
		case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
			if lost := n.lost("weft's server for health checks " + n.Health); lost != nil {
				return append(out, lost...), nil
			}
			return append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("weft's server for health checks has %s and does not answer: weft hangs, or the machine is overloaded", n.Health),
				Meaning: rulesStay, Remedy: "Restart weft: its rules stay meanwhile. `kill -ABRT` writes what it was doing to its log, for a bug report",
			}), nil
		case err != nil:
			return append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("weft's server for health checks does not answer on %s: %v", n.Health, err),
				Meaning: "Load balancers and the kubelet take this node for dead", Remedy: "Look for another program on the port (`ss -ltnp`), or name the address with --healthz-address",
			}), nil
		case code != http.StatusOK:
			out = append(out, Finding{Severity: Error, Found: fmt.Sprintf("%s is %d: %s", page.path, code, firstLine(body)), Meaning: page.meaning, Remedy: page.remedy})
		}
	}
	return append(out, counted(n.metrics())...), nil
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// counted returns what the metrics show.
func counted(values map[string]float64) []Finding {
	var out []Finding
	for _, m := range []struct {
		name     string
		severity Severity
		found    string
		meaning  string
		remedy   string
	}{
		{
			"weft_unrepaired_tables", Error, "%.0f tables are not as committed, and the kernel does not let weft repair them",
			"Another program owns or blocks tables of weft: packets follow what is there", "Find the program with `nft -a list tables` and `nft monitor`, stop it, and restart weft",
		},
		{
			"weft_services_quarantined", Error, "%.0f Services are left out, because the aggregator rejects them",
			"Connections to them are not forwarded on this node", "The Events of the Services say why (`kubectl get events -A --field-selector involvedObject.kind=Service`)",
		},
		{
			"weft_policy_rejected", Error, "%.0f network policies are rejected",
			"The pods that they apply to accept nothing that only they allow", "`weft get policies` has the reason of each",
		},
		{
			"weft_drift_repairs_total", Warning, "weft has repaired its tables %.0f times, because another program changed them",
			"Between the change and its repair packets took another way", "Find the program with `nft monitor`; from Linux 6.9 on the kernel does not let others change weft's tables",
		},
		{
			"weft_config_reload_errors_total", Warning, "the configuration could not be read again %.0f times",
			"The last good configuration is in force: publishers may lack rights that the file gives them", "weft's log has the line and the error; correct the file",
		},
	} {
		if v := values[m.name]; v > 0 {
			out = append(out, Finding{Severity: m.severity, Found: fmt.Sprintf(m.found, v), Meaning: m.meaning, Remedy: m.remedy})
		}
	}
	return out
}

// checkPublishers looks for publishers that are not back, and for limits that are nearly reached.
func checkPublishers(_ context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	publishers, err := n.publishers()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, p := range publishers {
		if p.GetAdopted() > 0 && len(p.GetSessions()) == 0 {
			out = append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("publisher %s has not come back since weft's start, and has %d fragments of before", p.GetName(), p.GetAdopted()),
				Meaning: "Its rules stay as they were: they may be out of date", Remedy: fmt.Sprintf("Start it; or if it does not exist any more, withdraw its fragments (`weft get`, `weft delete %s/NAME`)", p.GetName()),
			})
		}
		for _, l := range p.GetLimits() {
			if l.GetLimit() > 0 && l.GetUsed()*10 >= l.GetLimit()*9 {
				out = append(out, Finding{
					Severity: Warning, Found: fmt.Sprintf("publisher %s holds %d of at most %d %s", p.GetName(), l.GetUsed(), l.GetLimit(), l.GetName()),
					Meaning: "Above the limit its updates are rejected, and its last ones stay in force", Remedy: fmt.Sprintf("Raise the limit %q in the configuration, or have the publisher hold less", l.GetName()),
				})
			}
		}
	}
	return out, nil
}

// checkFragments looks for fragments that are not in force as their publishers want.
func checkFragments(_ context.Context, n *node) ([]Finding, error) {
	if !n.running() {
		return nil, nil
	}
	fragments, err := n.fragments()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range fragments {
		name := f.GetFragment().Text()
		switch {
		case f.GetState() == weftv1.FragmentStatus_STATE_ORPHANED:
			out = append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("fragment %s is stored but not in force: %s", name, violation(f)),
				Meaning: "Its rules are missing", Remedy: "Configure its publisher and restart weft, or withdraw it with `weft delete " + name + "`",
			})
		case len(f.GetViolations()) > 0:
			out = append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("an update of fragment %s was rejected: %s", name, violation(f)),
				Meaning: "The fragment is in force as it was before", Remedy: "Correct what the text names: `weft get fragment " + name + "` has all of it",
			})
		}
		if f.GetShadowed() > 0 {
			out = append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("%d elements of fragment %s are hidden by those of another fragment", f.GetShadowed(), name),
				Meaning: "Two publishers give one key different values, and the one with the lower priority number wins", Remedy: "`weft plan` and `weft get element` name both; remove one of them",
			})
		}
		if changed := f.GetChanged().AsTime(); f.GetChanged() != nil && changed.After(n.Now().Add(time.Minute)) {
			out = append(out, Finding{
				Severity: Warning, Found: fmt.Sprintf("fragment %s was changed at %s, which is in the future", name, changed.UTC().Format(time.RFC3339)),
				Meaning: "The clock was set back: fragments that expire stay longer than they should", Remedy: "Correct the clock (`timedatectl`, `chronyc tracking`)",
			})
		}
	}
	return out, nil
}

// violation returns the first violation of a fragment.
func violation(f *weftv1.FragmentStatus) string {
	if len(f.GetViolations()) == 0 {
		return "the configuration does not allow it"
	}
	return f.GetViolations()[0].GetMessage()
}
