/* NVIDIA devices on the PCI bus as the system's /sys tells of them, without root and without the driver. */
#ifndef Q_PCI_H
#define Q_PCI_H

struct pci_device {
    char address[16];              /* "0000:01:00.0" */
    unsigned device;               /* id: 0x1d83 */
    char driver[32];               /* kernel driver bound to it: "nvidia", "nouveau", "vfio-pci"; "": none */
    int width, max_width;          /* lanes of its link now, and of card and slot together; 0: the system does not say */
    double speed, max_speed;       /* GT/s a lane; 0: the system does not say. A card at rest lowers the first. */
};

enum { PCI_MOST = 32 };

/* Display and 3D controllers of NVIDIA, by address; returns how many there are (at most `most` are filled in). root: the folder of
 * devices, NULL: /sys/bus/pci/devices. 0 where there is no such folder. */
int pci_nvidia(const char *root, struct pci_device *out, int most);

#endif
