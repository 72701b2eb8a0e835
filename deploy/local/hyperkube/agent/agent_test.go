package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func nodeWithGPUs(capacity, allocatable string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Capacity = corev1.ResourceList{}
	node.Status.Allocatable = corev1.ResourceList{}
	if capacity != "" {
		node.Status.Capacity[gpuResource] = resource.MustParse(capacity)
	}
	if allocatable != "" {
		node.Status.Allocatable[gpuResource] = resource.MustParse(allocatable)
	}
	return node
}

func TestGPUPatch(t *testing.T) {
	for _, c := range []struct {
		name, capacity, allocatable string
		count                       int64
		patched                     bool
	}{
		{"new node", "", "", 8, true},
		{"as it should be", "8", "8", 8, false},
		{"the kubelet has reset it", "0", "0", 8, true},
		{"the kubelet has not copied it yet", "8", "0", 8, true},
		{"none wanted, none named", "", "", 0, true},
		{"none wanted", "0", "0", 0, false},
	} {
		patch, err := gpuPatch(nodeWithGPUs(c.capacity, c.allocatable), c.count)
		if err != nil || (patch != nil) != c.patched {
			t.Errorf("%s: patch %s, error %v, expected a patch: %v", c.name, patch, err, c.patched)
		}
	}
}

func TestEveryNodeGetsItsGPUs(t *testing.T) {
	second := nodeWithGPUs("0", "0")
	second.Name = "m"
	client := fake.NewSimpleClientset(nodeWithGPUs("", ""), second)
	shared := informers.NewSharedInformerFactory(client, 0)
	k := newGPUKeeper(client, shared, 4)
	shared.Start(t.Context().Done())
	shared.WaitForCacheSync(t.Context().Done())
	for _, name := range []string{"n", "m"} {
		if err := k.sync(context.Background(), name); err != nil {
			t.Fatal(err)
		}
		node, err := client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
		if got := node.Status.Allocatable[gpuResource]; err != nil || got.Value() != 4 {
			t.Errorf("node %s shows %s, error %v, expected 4", name, got.String(), err)
		}
	}
}

// startProvisioner returns one with filled caches; its queues are not run, so each test decides
// what is handled, and when.
func startProvisioner(t *testing.T, objects ...runtime.Object) (*provisioner, *fake.Clientset) {
	t.Helper()
	client := fake.NewSimpleClientset(objects...)
	shared := informers.NewSharedInformerFactory(client, 0)
	p := newProvisioner(client, shared, t.TempDir())
	shared.Start(t.Context().Done())
	shared.WaitForCacheSync(t.Context().Done())
	return p, client
}

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "local"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "data", Namespace: "default", UID: "u-1",
			Annotations: map[string]string{askedAnnotation: provisionerName},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func TestClaimGetsAFolderThatAnyUserCanWrite(t *testing.T) {
	p, client := startProvisioner(t, claim(nil))
	// Twice: the second pass meets what the first one made.
	for range 2 {
		if err := p.syncClaim(context.Background(), "default/data"); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(context.Background(), "pvc-u-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if volume.Spec.ClaimRef.UID != "u-1" || volume.Spec.StorageClassName != "local" {
		t.Errorf("the volume is for %+v of class %q", volume.Spec.ClaimRef, volume.Spec.StorageClassName)
	}
	info, err := os.Stat(volume.Spec.HostPath.Path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("folder: %v, %v, expected mode 0777", info, err)
	}
}

func TestClaimsThatGetNothing(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"of another provisioner": func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil },
		"bound":                  func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" },
		"block":                  func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block },
		"selector":               func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} },
	} {
		p, client := startProvisioner(t, claim(change))
		if err := p.syncClaim(context.Background(), "default/data"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		volumes, err := client.CoreV1().PersistentVolumes().List(context.Background(), metav1.ListOptions{})
		if err != nil || len(volumes.Items) != 0 {
			t.Errorf("%s: volumes %v, error %v, expected none", name, volumes, err)
		}
	}
}

func volume(phase corev1.PersistentVolumePhase, maker string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	v := newVolume("pvc-u-1", "/unused", claim(nil), &corev1.ObjectReference{UID: "u-1"})
	v.Annotations[madeByAnnotation] = maker
	v.Spec.PersistentVolumeReclaimPolicy = policy
	v.Status.Phase = phase
	return v
}

func TestOnlyAReleasedVolumeOfOursIsRemoved(t *testing.T) {
	const ours, deletes, keeps = provisionerName, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain
	for _, c := range []struct {
		name    string
		volume  *corev1.PersistentVolume
		removed bool
	}{
		{"released", volume(corev1.VolumeReleased, ours, deletes), true},
		{"bound", volume(corev1.VolumeBound, ours, deletes), false},
		{"to be kept", volume(corev1.VolumeReleased, ours, keeps), false},
		{"of another", volume(corev1.VolumeReleased, "another", deletes), false},
	} {
		p, client := startProvisioner(t, c.volume)
		folder := filepath.Join(p.root, "pvc-u-1")
		if err := os.Mkdir(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := p.syncVolume(context.Background(), "pvc-u-1"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		_, err := client.CoreV1().PersistentVolumes().Get(context.Background(), "pvc-u-1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) != c.removed {
			t.Errorf("%s: reading the volume says %v, expected it removed: %v", c.name, err, c.removed)
		}
		if _, err := os.Stat(folder); os.IsNotExist(err) != c.removed {
			t.Errorf("%s: the folder says %v, expected it removed: %v", c.name, err, c.removed)
		}
	}
}

// A folder whose claim still waits for its volume must stay; one that nobody names must go.
func TestForgottenFolders(t *testing.T) {
	p, _ := startProvisioner(t, claim(nil))
	for _, name := range []string{"pvc-u-1", "pvc-nobody", "not-ours"} {
		if err := os.Mkdir(filepath.Join(p.root, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := p.syncVolume(context.Background(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var left []string
	entries, _ := os.ReadDir(p.root)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if got := strings.Join(left, " "); got != "not-ours pvc-u-1" {
		t.Errorf("left are %q, expected not-ours and pvc-u-1", got)
	}
}

func TestRemoveFolderTrustsNoName(t *testing.T) {
	p, _ := startProvisioner(t)
	for _, name := range []string{"", ".", "..", "pvc-/../..", "pvc-a/b", "/etc"} {
		if err := p.removeFolder(name); err == nil {
			t.Errorf("%q was taken for a volume's name", name)
		}
	}
}

func TestOptions(t *testing.T) {
	good := []string{"-kubeconfig", "/k", "-volumes", "/v", "-gpus"}
	if o, err := parseOptions(append(good, "4")); err != nil || o.gpus != 4 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{nil, append(good, "-1"), append(good, "1025"), {"-kubeconfig", "/k", "-volumes", "v"}} {
		if _, err := parseOptions(bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
