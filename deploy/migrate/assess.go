package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
	"github.com/weft-proxy/weft/nft/kernel"
)

type level string

// The levels, the worst first.
const (
	blocks  level = "blocks"
	differs level = "differs"
	note    level = "note"
)

const (
	exitBlocks  = 1
	exitDiffers = 3
)

// finding is a result of assess. Its texts are sentences without a full stop.
type finding struct {
	Level   level  `json:"level"`
	Subject string `json:"subject"`
	Found   string `json:"found"`
	Remedy  string `json:"remedy,omitempty"`
}

type report struct {
	KubeProxy string `json:"kubeProxy,omitempty"`
	Mode      string `json:"mode,omitempty"`
	// ModeSource is how Mode is chosen.
	ModeSource string `json:"modeSource,omitempty"`
	// numbers by value of the label, "" for nodes without it
	Nodes map[string]int `json:"nodes"`
	// numbers by type
	Services map[string]int `json:"services"`
	Findings []finding      `json:"findings"`
	// of mode ipvs
	strictARP bool
}

func (r *report) add(l level, subject, remedy, format string, args ...any) {
	r.Findings = append(r.Findings, finding{Level: l, Subject: subject, Found: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (c *cluster) assess(ctx context.Context) (*report, error) {
	r := &report{Nodes: make(map[string]int), Services: make(map[string]int), Findings: []finding{}}
	peer, err := c.daemonSet(ctx, peerName)
	if err != nil {
		return nil, err
	}
	weft, err := c.daemonSet(ctx, weftName)
	if err != nil {
		return nil, err
	}
	r.addProxies(peer, weft)
	for _, read := range []func(context.Context, *report) error{c.configuration, c.nodes, c.services} {
		if err := read(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addProxies adds findings about the DaemonSets, which may be nil.
func (r *report) addProxies(peer, weft *appsv1.DaemonSet) {
	const subject = "DaemonSets"
	switch {
	case peer == nil:
		r.add(blocks, subject, "a kube-proxy that runs otherwise, as in k3s or as a static pod, is turned off where it is configured, and weft is installed without migration.enabled",
			"DaemonSet %s/%s does not exist: a label of the node cannot choose its proxy", namespace, peerName)
	case selects(peer, takeover.Weft):
		r.add(note, subject, "run weft migrate prepare, read the patch, and apply it with --yes", "kube-proxy does not leave nodes because of the label %s yet", takeover.Label)
	}
	if peer != nil && len(peer.Spec.Template.Spec.Containers) > 0 {
		r.KubeProxy = peer.Spec.Template.Spec.Containers[0].Image
	}
	switch {
	case weft == nil:
		r.add(note, subject, "install deploy/kubernetes/migration, or the chart with migration.enabled: it starts on no node until one has the label", "weft is not installed")
	case selects(weft, ""):
		r.add(blocks, subject, "install it with migration.enabled of the chart", "DaemonSet %s/%s runs on all nodes, whatever their label %s", namespace, weftName, takeover.Label)
	}
}

func (c *cluster) configuration(ctx context.Context, r *report) error {
	const subject, key = "configuration", "config.conf"
	config, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, peerName, metav1.GetOptions{})
	text, ok := "", false
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("get ConfigMap %s/%s: %w", namespace, peerName, err)
	default:
		text, ok = config.Data[key]
	}
	if !ok {
		r.add(differs, subject, "give weft the flags that kube-proxy has: it accepts the same (weft run --help)", "ConfigMap %s/%s has no %s: kube-proxy's settings are not known", namespace, peerName, key)
		return nil
	}
	settings, err := kubeproxy.Parse("ConfigMap "+namespace+"/"+peerName, []byte(text))
	if err != nil {
		r.add(blocks, subject, "correct it: weft refuses it, and kube-proxy reads it without checking names", "%v", err)
		return nil //nolint:nilerr // it is a finding
	}
	r.addSettings(settings)
	return nil
}

func (r *report) addSettings(s *kubeproxy.Settings) {
	const subject = "configuration"
	config := &s.Configuration
	r.Mode, r.ModeSource = s.PeerMode, "explicit: an upgrade keeps it"
	if !s.ModeGiven {
		r.ModeSource = "by omission"
		r.add(note, subject, "set mode, or migrate all nodes before an upgrade to 1.40", "mode is not set: kube-proxy uses iptables, with a warning from 1.37, and nftables from 1.40")
	}
	for _, w := range s.Warnings {
		r.add(differs, subject, "", "%s", w)
	}
	if r.Mode == kubeproxy.ModeIPVS {
		r.addIPVS(s)
	}
	if config.BindAddressHardFail {
		r.add(blocks, subject, "set bindAddressHardFail to false until all nodes are migrated", "bindAddressHardFail is true: neither proxy starts beside the other, which has its ports")
	}
	for name, address := range map[string]string{"metricsBindAddress": s.MetricsAddress, "healthzBindAddress": s.HealthzAddress} {
		if address == "" {
			r.add(blocks, subject, "give it an address, such as that of kube-proxy's default", "%s is off: by it each proxy sees that the other one has ended or is ready", name)
		}
	}
}

func (c *cluster) nodes(ctx context.Context, r *report) error {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	old := make(map[string][]string)
	var away []string
	for i := range list.Items {
		n := &list.Items[i]
		r.Nodes[n.Labels[takeover.Label]]++
		if system := n.Status.NodeInfo.OperatingSystem; system != "" && system != "linux" {
			continue // kube-proxy stays there
		}
		if err := kubeproxy.CheckRelease(n.Status.NodeInfo.KernelVersion); n.Status.NodeInfo.KernelVersion != "" && err != nil {
			old[err.Error()] = append(old[err.Error()], n.Name)
		}
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			away = append(away, n.Name)
		}
	}
	for why, names := range old {
		r.add(blocks, "nodes", "leave these nodes to kube-proxy, or give them a newer kernel", "%s: %s", why, cli.Some(names))
	}
	if len(away) > 0 {
		r.add(differs, "nodes", "migrate them when they are", "%d are not ready: %s", len(away), cli.Some(away))
	}
	return nil
}

func (c *cluster) services(ctx context.Context, r *report) error {
	list, err := c.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	r.addIPVSServices(list.Items)
	var affine, external []string
	for i := range list.Items {
		s := &list.Items[i]
		r.Services[string(s.Spec.Type)]++
		if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
			affine = append(affine, s.Namespace+"/"+s.Name)
		}
		if len(s.Spec.ExternalIPs) > 0 {
			external = append(external, s.Namespace+"/"+s.Name)
		}
	}
	if len(external) > 0 {
		r.add(note, "Services", "use addresses of a load balancer, or set the feature gate AllowServiceExternalIPs, which ends with 1.43",
			"%d have externalIPs, which kube-proxy 1.40 ignores by default, and weft if the API server has 1.40 or later: %s", len(external), cli.Some(external))
	}
	if len(affine) > 0 {
		r.add(differs, "Services", "", "%d have session affinity, whose memory does not cross over: a client may get another endpoint at its next connection: %s", len(affine), cli.Some(affine))
	}
	return nil
}

// exit returns the exit code as an error, nil for 0.
func (r *report) exit() error {
	switch {
	case r.count(blocks) > 0:
		return cli.ExitCode(exitBlocks)
	case r.count(differs) > 0:
		return cli.ExitCode(exitDiffers)
	}
	return nil
}

func (r *report) count(l level) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Level == l {
			n++
		}
	}
	return n
}

func (r *report) print(w io.Writer) error {
	var b strings.Builder
	for _, l := range []level{blocks, differs, note} {
		for _, f := range r.Findings {
			if f.Level != l {
				continue
			}
			fmt.Fprintf(&b, "%s: %s: %s.\n", f.Level, f.Subject, f.Found)
			if f.Remedy != "" {
				fmt.Fprintf(&b, "    %s.\n", f.Remedy)
			}
		}
	}
	total, services := 0, 0
	for _, n := range r.Nodes {
		total += n
	}
	for _, n := range r.Services {
		services += n
	}
	fmt.Fprintf(&b, "%d nodes (%d with weft, %d with both), %d Services, kube-proxy in mode %s (%s): %d block, %d differ\n",
		total, r.Nodes[takeover.Weft], r.Nodes[takeover.Beside], services, cmp.Or(r.Mode, "unknown"), cmp.Or(r.ModeSource, "its configuration is not known"), r.count(blocks), r.count(differs))
	_, err := io.WriteString(w, b.String())
	return err
}

// addHost examines this machine if kube-proxy has rules here.
func (r *report) addHost(ctx context.Context) {
	const subject = "this machine"
	rules, notices, err := takeover.Find(ctx, takeover.Config{})
	if err != nil {
		r.add(note, subject, "run it on a node as root to have its rules examined", "its rules are not examined: %v", err)
		return
	}
	if len(rules) == 0 {
		r.add(note, subject, "run it on a node as root to have its rules examined", "kube-proxy has no rules here")
		return
	}
	r.add(note, subject, "", "kube-proxy's rules, which weft removes when it has taken over: %s", strings.Join(rules, "; "))
	for _, n := range notices {
		// A running kube-proxy is expected.
		if !strings.Contains(n, "kube-proxy runs") {
			r.add(differs, subject, "", "%s", n)
		}
	}
	if left, err := ipvs.Find("/proc"); err != nil {
		r.add(note, subject, "", "IPVS is not examined: %v", err)
	} else {
		r.addIPVSHost("/proc", left)
	}
	drops, err := dropPolicies()
	if err != nil {
		r.add(note, subject, "", "the rules of other programs are not examined: %v", err)
		return
	}
	if len(drops) > 0 {
		r.add(differs, subject, "see that these accept packets to and from the pods by themselves: kube-proxy accepted those of Services in the chain KUBE-FORWARD, which goes. When weft runs on the node, weft doctor says what they drop",
			"chains of other programs drop what they do not accept: %s", strings.Join(drops, ", "))
	}
}

// dropPolicies names other programs' chains with a policy to drop forwarded packets.
func dropPolicies() ([]string, error) {
	const forward = 2 // NF_INET_FORWARD
	reader, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	defer func() { _ = reader.Close() }()
	programs, err := reader.Programs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range programs {
		if p.Ours || p.Dormant || !slices.Contains([]string{"ip", "ip6", "inet"}, p.ID.Family.String()) {
			continue
		}
		for _, c := range p.Chains {
			if c.Base != nil && c.Base.Drop && c.Base.Hook == forward {
				out = append(out, fmt.Sprintf("table %s chain %s", p.ID, c.Name))
			}
		}
	}
	return out, nil
}
