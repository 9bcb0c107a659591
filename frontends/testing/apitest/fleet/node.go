package main

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source"
)

type node func(ctx context.Context, name string, dial dial) error

type dial func(ctx context.Context, network, address string) (net.Conn, error)

const frontURL = "http://front"

func (c config) node() (node, error) {
	switch c.policy {
	case policyWeft:
		return follow, nil
	case policyCapped:
		return followCapped, nil
	default:
		return nil, fmt.Errorf("-policy %q: want %s or %s", c.policy, policyWeft, policyCapped)
	}
}

const (
	serviceLabels = "!service.kubernetes.io/service-proxy-name"
	serviceFields = "spec.clusterIP!=" + corev1.ClusterIPNone
	sliceLabels   = "!" + corev1.IsHeadlessService
	nodeField     = "metadata.name="
)

func follow(ctx context.Context, name string, dial dial) error {
	k, err := source.NewKube(source.KubeConfig{Server: frontURL, Dial: dial})
	if err != nil {
		return err
	}
	services := kind(corev1.SchemeGroupVersion, "services", &corev1.Service{})
	services.Namespaced, services.LabelSelector, services.FieldSelector = true, serviceLabels, serviceFields
	services.Fields = func(s *corev1.Service) fields.Set { return fields.Set{"spec.clusterIP": s.Spec.ClusterIP} }
	slices := kind(discoveryv1.SchemeGroupVersion, "endpointslices", &discoveryv1.EndpointSlice{})
	slices.Namespaced, slices.LabelSelector = true, sliceLabels
	nodes := kind(corev1.SchemeGroupVersion, "nodes", &corev1.Node{})
	nodes.FieldSelector = nodeField + name
	cidrs := kind(networkingv1.SchemeGroupVersion, "servicecidrs", &networkingv1.ServiceCIDR{})
	cidrs.Presence = source.Optional
	err = k.Subscribe(source.Subscription{
		User: name, Kinds: []source.AnyKind{services, slices, nodes, cidrs},
		Deliver: func(events []source.Event) {
			for _, e := range events {
				e.Apply()
			}
		},
	})
	if err != nil {
		return err
	}
	return k.Run(ctx)
}

func kind[O source.Object](gv schema.GroupVersion, resource string, object O) source.Kind[O, struct{}] {
	return source.Kind[O, struct{}]{
		Resource: gv.WithResource(resource), Object: object,
		Decode: func(O) struct{} { return struct{}{} },
		Set:    func(types.NamespacedName, struct{}) {},
		Delete: func(types.NamespacedName) {},
	}
}
