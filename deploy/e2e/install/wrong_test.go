package install

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// wrongTurn is a user's mistake.
type wrongTurn struct {
	what string
	// prepare undoes the installation so far, or prepares the mistake.
	prepare string
	// script is typed. fails is true if it must fail by itself.
	script string
	fails  bool
	// look is the user's next command; empty means the output of script. It must print all of want
	// within a minute.
	look string
	want []string
	// undo corrects the mistake.
	undo string
	// slow is true if a short run leaves it out.
	slow bool
}

type told struct {
	turn wrongTurn
	// lines have the texts of want, after is the time since the command.
	lines []string
	after time.Duration
}

// A short run leaves out the slow turns.
func takeAll(t *testing.T, ctx context.Context, types func(context.Context, string) (string, error), turns []wrongTurn) []told {
	t.Helper()
	var all []told
	for _, turn := range turns {
		if t.Failed() {
			break
		}
		if *slowFlag || !turn.slow {
			all = append(all, takeTurn(t, ctx, types, turn))
		}
	}
	return all
}

// takeTurn makes the mistake, and checks that the user is told the remedy.
func takeTurn(t *testing.T, ctx context.Context, types func(context.Context, string) (string, error), turn wrongTurn) told {
	t.Helper()
	if out, err := types(ctx, turn.prepare); err != nil {
		t.Fatalf("%s: %v\n%s", turn.what, err, out)
	}
	start := time.Now()
	out, err := types(ctx, turn.script)
	t.Logf("%s: %s: %v\n%s", turn.what, turn.script, err, out)
	if (err != nil) != turn.fails {
		t.Errorf("%s: it fails: %t (%v), and should: %t\n%s", turn.what, err != nil, err, turn.fails, out)
	}
	result := told{turn: turn}
	err = lab.Within(ctx, time.Minute, func() error {
		if turn.look != "" {
			out, _ = types(ctx, turn.look) // that it fails may be what the user looks for
		}
		result.lines, err = linesWith(out, turn.want)
		return err
	})
	result.after = time.Since(start)
	if err != nil {
		t.Errorf("%s: %v in\n%s", turn.what, err, out)
	}
	t.Logf("%s: told after %v:\n%s", turn.what, result.after.Round(time.Millisecond), strings.Join(result.lines, "\n"))
	if out, err := types(ctx, turn.undo); err != nil {
		t.Fatalf("%s: %v\n%s", turn.what, err, out)
	}
	return result
}

// linesWith returns the last line with each of the texts.
func linesWith(out string, want []string) ([]string, error) {
	var found []string
	for _, text := range want {
		last := ""
		for line := range strings.Lines(out) {
			if strings.Contains(line, text) {
				last = strings.TrimSpace(line)
			}
		}
		if last == "" {
			return found, &notTold{text}
		}
		found = append(found, last)
	}
	return found, nil
}

type notTold struct{ text string }

func (e *notTold) Error() string { return "no line has " + e.text }

const (
	weftLogs   = "kubectl -n kube-system logs -l app.kubernetes.io/name=weft --all-containers --tail 20"
	weftEvents = "kubectl -n kube-system events --types Warning"
	weftStatus = "kubectl -n kube-system exec daemonset/weft -- /weft get status"
)

func wrongOnKind() []wrongTurn {
	return []wrongTurn{
		{
			what: "the command twice", script: "kubectl apply -k deploy/kubernetes/kind", want: []string{"daemonset.apps/weft unchanged"},
		},
		{
			what: "helm on top of the manifests", script: "helm install weft deploy/helm/weft --namespace kube-system", fails: true,
			want: []string{"cannot be imported into the current release"},
		},
		{
			what:    "kube-proxy stays",
			prepare: `kubectl delete -k deploy/kubernetes/kind --wait && kubectl -n kube-system patch daemonset kube-proxy --type json -p '[{"op":"remove","path":"/spec/template/spec/nodeSelector/weft.dev~1none"}]' && kubectl -n kube-system rollout status daemonset/kube-proxy --timeout 2m`,
			script:  "kubectl apply -k deploy/kubernetes/kind && kubectl -n kube-system rollout status daemonset/weft --timeout 15s", fails: true,
			look: weftStatus, want: []string{"if it is kube-proxy, take that off this node"}, slow: true,
		},
	}
}

func wrongOnKubeadm() []wrongTurn {
	return []wrongTurn{
		{
			what: "helm install twice", script: "helm install weft deploy/helm/weft --namespace kube-system", fails: true,
			want: []string{"cannot re-use a name that is still in use"},
		},
		{
			what: "the variant for clusters with kube-proxy's ConfigMap", prepare: "helm uninstall weft --namespace kube-system --wait",
			script: "kubectl apply -k deploy/kubernetes/kubeadm && kubectl -n kube-system rollout status daemonset/weft --timeout 10s", fails: true,
			look: weftEvents, want: []string{`configmap "kube-proxy" not found`}, undo: "kubectl delete -k deploy/kubernetes/kubeadm --wait", slow: true,
		},
		{
			what:   "the address of the API server is not edited",
			script: "kubectl apply -k deploy/kubernetes/split && kubectl -n kube-system rollout status daemonset/weft --timeout 20s", fails: true,
			look: weftLogs, want: []string{"the Kubernetes API does not answer"}, undo: "kubectl delete -k deploy/kubernetes/split --wait", slow: true,
		},
	}
}

func wrongOnK3s() []wrongTurn {
	return []wrongTurn{
		{
			what: "helm without an address", prepare: "kubectl delete -k deploy/kubernetes/k3s --wait", script: "helm install weft deploy/helm/weft --namespace kube-system", fails: true,
			want: []string{"set apiServer.host"},
		},
	}
}

func wrongOnBare() []wrongTurn {
	return []wrongTurn{
		{
			what: "no kubeconfig", prepare: "systemctl stop weft; mv /etc/weft/kubeconfig kubeconfig", script: "systemctl start weft", fails: true,
			look: "journalctl -u weft --no-pager -n 20", want: []string{"write a file with the server and the credentials there"}, undo: "mv kubeconfig /etc/weft/kubeconfig",
		},
		{
			what: "another address in the kubeconfig", prepare: `systemctl stop weft; sed "s#server: .*#server: https://192.168.200.77:6443#" -i.right /etc/weft/kubeconfig`,
			script: "systemctl start weft", look: "weft get status", want: []string{"192.168.200.77"},
			undo: "mv /etc/weft/kubeconfig.right /etc/weft/kubeconfig; systemctl restart weft", slow: true,
		},
		{
			what: "weft without the unit and without settings", script: "weft run", fails: true, want: []string{"outside a pod use --kubeconfig or --manifests"},
		},
	}
}
