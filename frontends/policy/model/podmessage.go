package model

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/wire"
)

// The field numbers in generated.proto of k8s.io/api/core/v1 and
// k8s.io/apimachinery/pkg/apis/meta/v1. They never change.
const (
	podMetadata, podSpec, podStatus = 1, 2, 3

	metaName, metaNamespace, metaUID, metaCreated, metaLabels = 1, 3, 5, 8, 11
	timeSeconds                                               = 1
	entryKey, entryValue                                      = 1, 2

	specContainers, specNodeName, specHostNetwork, specInitContainers = 2, 10, 11, 20
	containerPorts, containerRestartPolicy                            = 6, 24
	containerPortName, containerPortNumber, containerPortProtocol     = 1, 3, 4

	statusPhase, statusPodIP, statusPodIPs = 1, 6, 12
	addressIP                              = 1
)

// UnmarshalPod returns the parsed form of a Pod in protobuf.
func UnmarshalPod(message []byte) (*PodObject, error) {
	m := podMessage{created: time.Time{}.Unix()}
	if err := wire.Fields(message, m.field); err != nil {
		return nil, err
	}
	return m.object(), nil
}

type podMessage struct {
	namespace, name, uid string
	created              int64
	labels               []label
	node                 string
	hostNetwork          bool
	containers, sidecars []containerPort
	phase, podIP         string
	podIPs               []string
}

type containerPort struct {
	name, protocol string
	number         int32
}

func (m *podMessage) object() *PodObject {
	out := &PodObject{podFacts: podFacts{
		name: types.NamespacedName{Namespace: m.namespace, Name: m.name}, uid: types.UID(m.uid), created: m.created, node: m.node,
	}, labels: sortedLabels(m.labels)}
	if out.uid == "" {
		out.uid = types.UID(out.name.String())
	}
	if phase := corev1.PodPhase(m.phase); m.hostNetwork || phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return out
	}
	switch {
	case len(m.podIPs) > 0:
		out.setAddresses("status.podIPs", m.podIPs)
	case m.podIP != "":
		out.setAddresses("status.podIP", []string{m.podIP})
	}
	// Ports of containers precede the ports of sidecars (rule 27). A name means its first port for
	// each protocol (rule 25).
	for _, ports := range [][]containerPort{m.containers, m.sidecars} {
		for _, p := range ports {
			out.addPort(p.name, corev1.Protocol(p.protocol), p.number)
		}
	}
	out.ports = slices.Clip(out.ports)
	return out
}

// The last label with a key counts.
func sortedLabels(in []label) []label {
	if len(in) == 0 {
		return nil
	}
	slices.SortStableFunc(in, func(a, b label) int { return strings.Compare(a.key, b.key) })
	out := in[:0]
	for i, l := range in {
		if i+1 == len(in) || in[i+1].key != l.key {
			out = append(out, l)
		}
	}
	return slices.Clone(out)
}

// field follows protobuf: the last value of a field counts, and messages are merged.
func (m *podMessage) field(f wire.Field) error {
	switch f.Number {
	case podMetadata:
		return f.Message(m.metadataField)
	case podSpec:
		return f.Message(m.specField)
	case podStatus:
		return f.Message(m.statusField)
	}
	return nil
}

func (m *podMessage) metadataField(f wire.Field) error {
	switch f.Number {
	case metaName:
		return f.Text(&m.name)
	case metaNamespace:
		return internText(f, &m.namespace)
	case metaUID:
		return f.Text(&m.uid)
	case metaCreated:
		return m.readCreated(f)
	case metaLabels:
		return m.addLabel(f)
	}
	return nil
}

func internText(f wire.Field, to *string) error {
	v, err := f.Bytes()
	*to = intern(string(v))
	return err
}

// An empty time is the zero time.
func (m *podMessage) readCreated(f wire.Field) error {
	m.created = time.Time{}.Unix()
	if len(f.Value) > 0 {
		m.created = 0
	}
	return f.Message(func(f wire.Field) error {
		if f.Number != timeSeconds {
			return nil
		}
		n, err := f.Number64()
		m.created = int64(n) //nolint:gosec // as the type of the field says
		return err
	})
}

func (m *podMessage) addLabel(f wire.Field) error {
	var l label
	err := f.Message(func(f wire.Field) error {
		switch f.Number {
		case entryKey:
			return internText(f, &l.key)
		case entryValue:
			return f.Text(&l.value)
		}
		return nil
	})
	if m.labels == nil {
		m.labels = make([]label, 0, 4)
	}
	m.labels = append(m.labels, l)
	return err
}

func (m *podMessage) specField(f wire.Field) error {
	switch f.Number {
	case specNodeName:
		return internText(f, &m.node)
	case specHostNetwork:
		n, err := f.Number64()
		m.hostNetwork = n != 0
		return err
	case specContainers:
		ports, _, err := readContainer(f, m.containers)
		m.containers = ports
		return err
	case specInitContainers:
		ports, keepsRunning, err := readContainer(f, m.sidecars)
		if keepsRunning {
			m.sidecars = ports
		}
		return err
	}
	return nil
}

// keepsRunning is true for a sidecar.
func readContainer(f wire.Field, in []containerPort) (ports []containerPort, keepsRunning bool, err error) {
	ports = in
	err = f.Message(func(f wire.Field) error {
		switch f.Number {
		case containerPorts:
			p, err := readPort(f)
			ports = append(ports, p)
			return err
		case containerRestartPolicy:
			v, err := f.Bytes()
			keepsRunning = string(v) == string(corev1.ContainerRestartPolicyAlways)
			return err
		}
		return nil
	})
	return ports, keepsRunning, err
}

func readPort(f wire.Field) (p containerPort, err error) {
	err = f.Message(func(f wire.Field) error {
		switch f.Number {
		case containerPortName:
			return internText(f, &p.name)
		case containerPortNumber:
			n, err := f.Number64()
			p.number = int32(n) //nolint:gosec // as the type of the field says
			return err
		case containerPortProtocol:
			return internText(f, &p.protocol)
		}
		return nil
	})
	return p, err
}

func (m *podMessage) statusField(f wire.Field) error {
	switch f.Number {
	case statusPhase:
		return internText(f, &m.phase)
	case statusPodIP:
		return f.Text(&m.podIP)
	case statusPodIPs:
		var ip string
		err := f.Message(func(f wire.Field) error {
			if f.Number == addressIP {
				return f.Text(&ip)
			}
			return nil
		})
		if m.podIPs == nil {
			m.podIPs = make([]string, 0, 2)
		}
		m.podIPs = append(m.podIPs, ip)
		return err
	}
	return nil
}
