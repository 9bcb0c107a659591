package balancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// finalizer is the cloud providers'. It keeps a Service until its address is free.
const finalizer = "service.kubernetes.io/load-balancer-cleanup"

const period = time.Second

// Config configures a balancer.
type Config struct {
	Client kubernetes.Interface
	// Ranges are the prefixes of addresses, one of each family.
	Ranges []netip.Prefix
	// Route routes an address to the named nodes. Without nodes it removes the route.
	Route func(addr netip.Addr, nodes []string) error
	// Log gets failures and changes of routes. It may be nil.
	Log *slog.Logger
}

// Balancer is the controller.
type Balancer struct {
	cfg      Config
	services listers.ServiceLister
	nodes    listers.NodeLister
	pool     pool
	health   *health
	held     map[types.UID]*balanced
}

type balanced struct {
	addresses []netip.Addr
	routed    []string
}

// New returns a balancer. Run starts it.
func New(cfg Config) (*Balancer, error) {
	if cfg.Client == nil || cfg.Route == nil || len(cfg.Ranges) == 0 {
		return nil, errors.New("make balancer: Client, Route and Ranges are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Balancer{cfg: cfg, pool: pool{ranges: cfg.Ranges}, health: newHealth(), held: map[types.UID]*balanced{}}, nil
}

// Run follows the cluster until ctx ends.
func (b *Balancer) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(b.cfg.Client, 0)
	b.services, b.nodes = factory.Core().V1().Services().Lister(), factory.Core().V1().Nodes().Lister()
	nudge := make(chan struct{}, 1)
	changed := func() {
		select {
		case nudge <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Services().Informer(), factory.Core().V1().Nodes().Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return fmt.Errorf("run balancer: %w", err)
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("run balancer: list %s: %w", kind, context.Cause(ctx))
		}
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		check := false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			check = true
		case <-nudge:
		}
		if err := b.reconcile(ctx, check); err != nil && ctx.Err() == nil {
			b.cfg.Log.Error("cannot reconcile; the next round tries again", "error", err)
		}
	}
}

// reconcile first asks the health check node ports if check is set.
func (b *Balancer) reconcile(ctx context.Context, check bool) error {
	services, err := b.services.List(labels.Everything())
	if err != nil {
		return err
	}
	nodes, err := b.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	services = slices.DeleteFunc(slices.Clone(services), func(s *corev1.Service) bool { return !wanted(s) && !mine(s) })
	if check {
		b.health.check(ctx, services, nodes)
	}
	var errs []error
	seen := map[types.UID]bool{}
	for _, s := range services {
		seen[s.UID] = true
		if wanted(s) {
			errs = append(errs, b.assign(ctx, s, nodes))
		} else {
			errs = append(errs, b.release(ctx, s))
		}
	}
	for uid := range b.held {
		if !seen[uid] {
			errs = append(errs, b.free(uid))
		}
	}
	return errors.Join(errs...)
}

func wanted(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.DeletionTimestamp == nil && s.Spec.LoadBalancerClass == nil
}

// mine reports whether the balancer has handled the Service.
func mine(s *corev1.Service) bool { return slices.Contains(s.Finalizers, finalizer) }

// assign works in this order: finalizer, addresses, routes, status.
func (b *Balancer) assign(ctx context.Context, s *corev1.Service, nodes []*corev1.Node) error {
	if !mine(s) {
		s = s.DeepCopy()
		s.Finalizers = append(s.Finalizers, finalizer)
		updated, err := b.cfg.Client.CoreV1().Services(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("add finalizer of Service %s/%s: %w", s.Namespace, s.Name, err)
		}
		s = updated
	}
	have := b.held[s.UID]
	if have == nil {
		addresses, err := b.pool.allocate(s.Spec.IPFamilies)
		if err != nil {
			return fmt.Errorf("allocate addresses of Service %s/%s: %w", s.Namespace, s.Name, err)
		}
		have = &balanced{addresses: addresses}
		b.held[s.UID] = have
	}
	if targets := b.targets(s, nodes); !slices.Equal(targets, have.routed) {
		for _, addr := range have.addresses {
			if err := b.cfg.Route(addr, targets); err != nil {
				return err
			}
		}
		have.routed = targets
		b.cfg.Log.Info("routed", "service", s.Namespace+"/"+s.Name, "addresses", have.addresses, "nodes", targets)
	}
	var status corev1.LoadBalancerStatus
	mode := corev1.LoadBalancerIPModeVIP
	for _, addr := range have.addresses {
		status.Ingress = append(status.Ingress, corev1.LoadBalancerIngress{IP: addr.String(), IPMode: &mode})
	}
	return b.writeStatus(ctx, s, status)
}

func (b *Balancer) writeStatus(ctx context.Context, s *corev1.Service, status corev1.LoadBalancerStatus) error {
	if reflect.DeepEqual(s.Status.LoadBalancer, status) {
		return nil
	}
	s = s.DeepCopy()
	s.Status.LoadBalancer = status
	if _, err := b.cfg.Client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write status of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

func (b *Balancer) targets(s *corev1.Service, nodes []*corev1.Node) []string {
	var names []string
	for _, n := range nodes {
		local := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		if ready(n) && (!local || b.health.ok(s, n)) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && len(names) > 1 {
		names = names[:1]
	}
	return names
}

func ready(n *corev1.Node) bool {
	if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// release removes the finalizer last.
func (b *Balancer) release(ctx context.Context, s *corev1.Service) error {
	if err := b.free(s.UID); err != nil {
		return err
	}
	if len(s.Status.LoadBalancer.Ingress) > 0 {
		// The event of the status change leads to the removal of the finalizer.
		return b.writeStatus(ctx, s, corev1.LoadBalancerStatus{})
	}
	s = s.DeepCopy()
	s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == finalizer })
	if _, err := b.cfg.Client.CoreV1().Services(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("remove finalizer of Service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

func (b *Balancer) free(uid types.UID) error {
	have := b.held[uid]
	if have == nil {
		return nil
	}
	for _, addr := range have.addresses {
		if err := b.cfg.Route(addr, nil); err != nil {
			return err
		}
	}
	b.pool.free(have.addresses)
	delete(b.held, uid)
	b.health.forget(uid)
	return nil
}
