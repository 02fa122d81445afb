import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends a record for each key (a line of base64) of a file, and prints the partition that each went to. */
class JavaPartitions {
  public static void main(String[] args) throws Exception {
    String brokers = args[0];
    String topic = args[1];
    Path keys = Path.of(args[2]);
    Properties properties = new Properties();
    properties.put("bootstrap.servers", brokers);
    try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (String line : Files.readAllLines(keys)) {
        sent.add(producer.send(new ProducerRecord<>(topic, Base64.getDecoder().decode(line), new byte[0])));
      }
      StringBuilder partitions = new StringBuilder();
      for (Future<RecordMetadata> one : sent) partitions.append(one.get().partition()).append('\n');
      System.out.print(partitions);
    }
  }
}
