package runtime

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestLifeOfContainer(t *testing.T) {
	_, c := serve(t)
	pod := c.pod(t, &cri.PodSandboxConfig{Hostname: "web"})
	id := c.create(t, pod, "hostname; echo wrong >&2; printf part; exit 3")
	if got := c.status(t, id).GetState(); got != cri.ContainerState_CONTAINER_CREATED {
		t.Errorf("state = %v after CreateContainer", got)
	}
	c.begin(t, id)
	eventually(t, "container exits", func() bool { return c.status(t, id).GetState() == cri.ContainerState_CONTAINER_EXITED })
	if s := c.status(t, id); s.GetExitCode() != 3 || s.GetReason() != "Error" || s.GetFinishedAt() < s.GetStartedAt() {
		t.Errorf("status = %v, want exit code 3 because of an error", s)
	}
	log, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^\S+ `).ReplaceAllString(string(log), "")
	for _, want := range []string{"stdout F web\n", "stderr F wrong\n", "stdout P part\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	for name, test := range map[string]struct {
		filter *cri.ContainerFilter
		want   int
	}{
		"none":      {nil, 1},
		"pod":       {&cri.ContainerFilter{PodSandboxId: pod}, 1},
		"other pod": {&cri.ContainerFilter{PodSandboxId: id}, 0},
		"exited":    {&cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_EXITED}}, 1},
		"running":   {&cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}}, 0},
		"labels":    {&cri.ContainerFilter{LabelSelector: map[string]string{"pod": pod}}, 1},
		"no labels": {&cri.ContainerFilter{LabelSelector: map[string]string{"pod": "other"}}, 0},
	} {
		list, err := c.ListContainers(c.ctx, &cri.ListContainersRequest{Filter: test.filter})
		if err != nil || len(list.GetContainers()) != test.want {
			t.Errorf("ListContainers with filter %s: %d containers, %v, want %d", name, len(list.GetContainers()), err, test.want)
		}
	}
	for range 2 { // it may be gone
		if _, err := c.RemoveContainer(c.ctx, &cri.RemoveContainerRequest{ContainerId: id}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.ContainerStatus(c.ctx, &cri.ContainerStatusRequest{ContainerId: id}); status.Code(err) != codes.NotFound {
		t.Errorf("ContainerStatus after RemoveContainer: %v", err)
	}
}

func TestStopContainer(t *testing.T) {
	_, c := serve(t)
	pod := c.pod(t, &cri.PodSandboxConfig{Hostname: "web"})
	for name, test := range map[string]struct {
		script  string
		timeout int64
		want    int32
	}{
		"ends when asked":     {"trap 'exit 7' TERM; touch /ready; while :; do sleep 0.05; done", 20, 7},
		"does not end":        {"trap '' TERM; touch /ready; while :; do sleep 0.05; done", 1, 137},
		"killed without time": {"trap 'exit 7' TERM; touch /ready; while :; do sleep 0.05; done", 0, 137},
	} {
		t.Run(name, func(t *testing.T) {
			id := c.start(t, pod, test.script)
			eventually(t, "container is ready", func() bool {
				r, err := c.execute(id, "test -e /ready", 0)
				return err == nil && r.GetExitCode() == 0
			})
			if _, err := c.StopContainer(c.ctx, &cri.StopContainerRequest{ContainerId: id, Timeout: test.timeout}); err != nil {
				t.Fatal(err)
			}
			if s := c.status(t, id); s.GetState() != cri.ContainerState_CONTAINER_EXITED || s.GetExitCode() != test.want {
				t.Errorf("status = %v, want exit code %d", s, test.want)
			}
		})
	}
}

func TestExecSync(t *testing.T) {
	_, c := serve(t)
	id := c.start(t, c.pod(t, &cri.PodSandboxConfig{Hostname: "web"}), "exec sleep 1000")
	r, err := c.execute(id, "hostname; echo wrong >&2; exit 4", 0)
	if err != nil || string(r.GetStdout()) != "web\n" || string(r.GetStderr()) != "wrong\n" || r.GetExitCode() != 4 {
		t.Errorf("ExecSync = %v, %v", r, err)
	}
	if r, err := c.ExecSync(c.ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"/foo"}}); err == nil || !strings.Contains(err.Error(), "/foo") {
		t.Errorf("ExecSync of a missing program = %v, %v", r, err)
	}
	// A slow probe ends with its children.
	if r, err := c.execute(id, "sleep 1001 & sleep 1001; echo not reached", 1); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("ExecSync = %v, %v, want that it timed out", r, err)
	}
	eventually(t, "the command has ended", func() bool {
		return c.output(t, id, `grep -lz '^100[1]$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l`) == "0\n"
	})
}
