package install

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

type kind struct {
	name string
	// the document's text about the kind
	about    string
	document string
	// members is the number of nodes, podCIDRs the prefixes of pods.
	members  int
	podCIDRs []netip.Prefix
	// prepare makes the kind's initial state.
	prepare func(context.Context, *world) error
	// wrong turns follow a correct installation.
	wrong []wrongTurn
}

const (
	readme        = "README.md"
	clusterReadme = "deploy/kubernetes/README.md"
	systemdReadme = "deploy/systemd/README.md"
)

// kinds have kubelets on all nodes, in the document's order.
func kinds() []kind {
	return []kind{
		{
			name: "kind", about: "kube-proxy runs as kind installs it, in mode iptables (nf_tables); ConfigMaps of kube-proxy and kubeadm",
			document: readme, members: 2, podCIDRs: lab.ClusterCIDRs(), prepare: likeKind, wrong: wrongOnKind(),
		},
		{
			name: "kubeadm", about: "kube-proxy runs as kubeadm installs it; split containers",
			document: clusterReadme, members: 2, podCIDRs: lab.ClusterCIDRs(), prepare: likeKind,
		},
		{
			name: "kubeadm without kube-proxy", about: "`--skip-phases=addon/kube-proxy`, without a control plane endpoint: no ConfigMap of kube-proxy; helm finds the address in `cluster-info`",
			document: clusterReadme, members: 2, podCIDRs: lab.ClusterCIDRs(), prepare: likeKubeadm, wrong: wrongOnKubeadm(),
		},
		{
			name: "k3s", about: "`--disable-kube-proxy`: no ConfigMaps; each node reaches the API server at 127.0.0.1:6444; pods in 10.42.0.0/16",
			document: clusterReadme, members: 2, podCIDRs: []netip.Prefix{netip.MustParsePrefix("10.42.0.0/16"), netip.MustParsePrefix("fd00:10:42::/48")},
			prepare: likeK3s, wrong: wrongOnK3s(),
		},
		{
			name: "any", about: "no ConfigMap says anything; helm is given the address of the API server",
			document: clusterReadme, members: 2, podCIDRs: lab.ClusterCIDRs(), prepare: likeNothing,
		},
		{
			name: "any without helm", about: "the same, with `sed`",
			document: clusterReadme, members: 2, podCIDRs: lab.ClusterCIDRs(), prepare: likeNothing,
		},
	}
}

func likeKind(ctx context.Context, w *world) error {
	if err := likeKubeadm(ctx, w); err != nil {
		return err
	}
	if err := w.Cluster.CreateKubeProxy(ctx, cluster.KubeProxy{Mode: "iptables-nft", ClusterCIDRs: lab.ClusterCIDRs()}); err != nil {
		return err
	}
	return lab.Within(ctx, patience, func() error { return w.Cluster.RolledOut(ctx, "kube-proxy", len(w.Members)) })
}

func likeKubeadm(ctx context.Context, w *world) error {
	text, err := os.ReadFile("testdata/kubeadm.yaml")
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return w.Cluster.CreateObjects(ctx, []byte(strings.NewReplacer("SERVER", w.Cluster.URL(), "POD_SUBNET", lab.Join(lab.ClusterCIDRs())).Replace(string(text))))
}

// likeNothing has only the API server and the kubelets.
func likeNothing(context.Context, *world) error { return nil }

// likeK3s has a load balancer to the API server on each node.
func likeK3s(_ context.Context, w *world) error {
	server := strings.TrimPrefix(w.Cluster.URL(), "https://")
	for _, n := range w.Members {
		listener, err := n.Relay("127.0.0.1:6444", n.Namespace, server)
		if err != nil {
			return err
		}
		w.stops = append(w.stops, listener.Close)
	}
	return nil
}
