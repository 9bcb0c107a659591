package model

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pick returns one of values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomPod returns a pod with all that the model reads, valid or not, and more.
func randomPod(r *rand.Rand) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = pick(r, "", "shop", "blog"), pick(r, "", "web", "db"), types.UID(pick(r, "", "uid-1"))
	p.CreationTimestamp = pick(r, metav1.Time{}, metav1.Unix(1_700_000_000, 5), metav1.Unix(0, 0), metav1.Unix(-7, 0))
	p.Annotations = map[string]string{"note": strings.Repeat("x", r.IntN(300))}
	for range r.IntN(15) {
		if p.Labels == nil {
			p.Labels = make(map[string]string)
		}
		p.Labels[fmt.Sprint("key-", r.IntN(20))] = pick(r, "", "a", "b")
	}
	p.Spec.NodeName, p.Spec.HostNetwork = pick(r, "", "n1", "n2"), r.IntN(8) == 0
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for range r.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, randomContainer(r))
		p.Spec.InitContainers = append(p.Spec.InitContainers, randomContainer(r))
	}
	p.Status.Phase = pick(r, "", corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	addresses := []string{"", "10.0.0.1", "10.0.0.2", "fd00::1", "lo", "::ffff:10.0.0.1"}
	p.Status.PodIP = pick(r, addresses...)
	for range r.IntN(4) {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: pick(r, addresses...)})
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func randomContainer(r *rand.Rand) corev1.Container {
	c := corev1.Container{Name: "c", Image: "registry.example/image:1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}
	for range r.IntN(4) {
		c.Ports = append(c.Ports, corev1.ContainerPort{
			Name: pick(r, "", "http", "dns"), HostPort: 7, ContainerPort: pick[int32](r, -1, 0, 53, 80, 65536),
			Protocol: pick(r, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP, "HTTP"),
		})
	}
	if always := corev1.ContainerRestartPolicyAlways; r.IntN(2) == 0 {
		c.RestartPolicy = &always
	}
	return c
}

// referencePod reads a Pod that the library has decoded.
func referencePod(o *corev1.Pod) *PodObject {
	out := &PodObject{podFacts: podFacts{
		name: types.NamespacedName{Namespace: intern(o.Namespace), Name: o.Name}, uid: o.UID,
		created: o.CreationTimestamp.Unix(), node: intern(o.Spec.NodeName),
	}, labels: parseLabels(o.Labels)}
	if out.uid == "" {
		out.uid = types.UID(out.name.String())
	}
	if o.Spec.HostNetwork || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
		return out
	}
	texts := make([]string, 0, 2)
	for i := range o.Status.PodIPs {
		texts = append(texts, o.Status.PodIPs[i].IP)
	}
	switch {
	case len(texts) > 0:
		out.setAddresses("status.podIPs", texts)
	case o.Status.PodIP != "":
		out.setAddresses("status.podIP", []string{o.Status.PodIP})
	}
	ports := func(c *corev1.Container) {
		for _, p := range c.Ports {
			out.addPort(p.Name, p.Protocol, p.ContainerPort)
		}
	}
	for i := range o.Spec.Containers {
		ports(&o.Spec.Containers[i])
	}
	for i := range o.Spec.InitContainers {
		if c := &o.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ports(c)
		}
	}
	out.ports = slices.Clip(out.ports)
	return out
}

// TestUnmarshalPod has random pods: of the message and of the object the model keeps the same.
func TestUnmarshalPod(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		p := randomPod(r)
		message, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnmarshalPod(message)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		// A decoder returns no map without labels, and times of whole seconds.
		decoded := &corev1.Pod{}
		if err := decoded.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		if want := referencePod(decoded); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v:\ngot  %+v\nwant %+v", p, got, want)
		}
	}
}

// FuzzUnmarshalPod has messages that may be damaged, or joined from parts of others: what both
// decoders take for a pod is the same pod.
func FuzzUnmarshalPod(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	var last []byte
	for range 20 {
		message, err := randomPod(r).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
		f.Add(append(message, last...))
		f.Add(message[:len(message)/2])
		last = message
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		decoded := &corev1.Pod{}
		err := decoded.Unmarshal(message)
		got, err2 := UnmarshalPod(message)
		if err != nil || err2 != nil {
			return
		}
		if want := referencePod(decoded); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}
